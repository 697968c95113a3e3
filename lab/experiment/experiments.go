package experiment

import (
	"cmp"
	"context"
	"net/url"
	"slices"
	"time"

	"oversell/api"
	"oversell/lab/fault"
	"oversell/lab/history"
	"oversell/lab/rig"
)

// Experiment injects one hazard into the runs of all its strategies at the same time.
type Experiment struct {
	Hazard string
	// Title describes the experiment. Shows describes the effect to expect.
	Title, Shows string
	// Applies reports whether the hazard can affect a strategy at all.
	Applies func(Card) bool
	// Fenced adds runs with fencing tokens to each plan that does not name its strategies.
	Fenced bool
	// ClaimedAs is the hazard whose claims apply to this experiment. Empty means Hazard.
	ClaimedAs string
	// Default is the claim of every card that says nothing about the hazard.
	Default Claim
	// Lab configures a lab for this experiment alone. If nil, the testbed's lab is used.
	Lab     func(rig.Config) rig.Config
	perform func(ctx context.Context, r *round) ([]Result, error)
}

// AppliesTo reports whether Applies(c) is true or the card makes a claim about the hazard. A lab of the
// experiment's own may lack the servers of a strategy with a claim, so there Applies alone decides.
func (e Experiment) AppliesTo(c Card) bool {
	return e.Applies(c) || e.Lab == nil && e.Claim(c, false) != Silent
}

// Claim returns the card's claim. With fencing tokens, it is Protects if e.Fenced, else Silent.
func (e Experiment) Claim(c Card, fenced bool) Claim {
	switch {
	case !fenced:
		return cmp.Or(c.Claim(cmp.Or(e.ClaimedAs, e.Hazard)), e.Default)
	case e.Fenced:
		return Protects
	default:
		return Silent
	}
}

// All returns the experiments in the order of the matrix of results.
func All() []Experiment {
	return []Experiment{
		race(), replicaRace(), earlyRelease(), casStorm(), deadlock(), crash(), overrun(), foreignUnlock(), lateRelease(), crashBetween(), pause(), pauseAtRead(),
		failover(), failoverSentinel(), failoverCluster(), splitBrain(), minReplicas(), splitRenewal(), splitRenewalMin(), quorumLoss(), resharding(), minorityLoss(), majorityLoss(), clockJump(), sessionExpiry(), deadWaiter(), cutoff(), lostReply(), lateAnswer(), partition(), bareMajority(),
		operator(), operatorAtWrite(), starved(), renewalReply(), waiterSession(),
		nesting(), polling(), herd(), writeBehind(), percentiles(), restart(), databaseDown(), galera(), twoMasters(), staleRead(),
	}
}

func always(Card) bool    { return true }
func lockers(c Card) bool { return c.Locker }

func claimed(hazard string) func(Card) bool {
	return func(c Card) bool { return c.Claim(hazard) != Silent }
}

// claimedOrOnTrial applies also to a lock of another program on these backends. Its author may not
// know the hazard, and so claims nothing.
func claimedOrOnTrial(hazard string, backends ...string) func(Card) bool {
	return func(c Card) bool {
		return claimed(hazard)(c) || c.Family == "adapter" && slices.ContainsFunc(backends, c.uses)
	}
}

func wait(d time.Duration) url.Values { return url.Values{"wait": {d.String()}} }

// grantBound limits the time from a fault to the next grant: rest of the lease, detection, delays.
const grantBound = 3*Lease + 2*time.Second

func race() Experiment {
	return Experiment{
		Hazard: "race", Title: "two requests in one process", Shows: "a lost update: 2 sold, 1 taken from stock", Applies: always,
		perform: procedure{step: "read", sameReplica: true, contenderParams: wait(500 * time.Millisecond)}.perform,
	}
}

func replicaRace() Experiment {
	return Experiment{
		Hazard: "replica-race", Title: "two requests on two replicas", Shows: "correct on one replica, broken on two", Applies: always,
		perform: procedure{step: "read", contenderParams: wait(500 * time.Millisecond)}.perform,
	}
}

// earlyRelease pauses the holder between the release of its lock and its commit, until the
// contender (the second request) has read the stock.
func earlyRelease() Experiment {
	return Experiment{
		Hazard: "early-release", Title: "unlock before commit", Shows: "a lost update in spite of the lock", Applies: always,
		perform: procedure{step: "released", sameReplica: true, contenderAt: "writing", contenderParams: wait(5 * time.Second)}.perform,
	}
}

func deadlock() Experiment {
	return Experiment{
		Hazard: "deadlock", Title: "two requests have read, and both write", Shows: "error 1213: MySQL rolls one of them back", Applies: claimed("deadlock"),
		perform: procedure{
			step: "read", contenderAt: "writing", contenderParams: wait(time.Second),
			judge: func(p *participant) *finding {
				if n := p.ops[holder].Retries + p.ops[contender].Retries; n > 0 {
					return &finding{api.Wasteful, "", api.Textf("The two requests waited for each other, and MySQL rolled one of them back. Retries: %d.", "两个请求互相等待，MySQL 回滚了其中一个。重试 %d 次。", n)}
				}
				return nil
			},
		}.perform,
	}
}

func crash() Experiment {
	late := finding{api.Stalled, Progress, api.Textf("No request acquired the lock within %v after the holder was killed.", "持锁者被杀死后 %v 内没有请求拿到锁。", grantBound)}
	return Experiment{
		Hazard: "crash", Title: "the holder's process is killed", Shows: "how long the others wait for the lock of a dead holder", Applies: always,
		perform: procedure{step: "granted", contenderParams: wait(grantBound), inject: killReplica(holder), judge: mustSell(late, contender)}.perform,
	}
}

func overrun() Experiment {
	expired := finding{api.Aborted, "", api.Text{EN: "The lease expired before the work finished, and the holder did not write.", ZH: "工作完成之前租期已过，持锁者没有写入。"}}
	return Experiment{
		Hazard: "overrun", Title: "work longer than the lease", Shows: "the lease expires while the holder works", Applies: lockers,
		perform: procedure{
			step: "read", holderParams: url.Values{"hold": {(2 * Lease).String()}}, contenderParams: wait(grantBound),
			lapse:  api.Text{EN: "The holder's lease expired during its work, and it wrote anyway.", ZH: "工作期间租期已过，持锁者仍然写入。"},
			inject: resumeHolders, judge: mustSell(expired, holder),
		}.perform,
	}
}

func foreignUnlock() Experiment {
	return Experiment{
		Hazard: "foreign-unlock", Title: "a late release", Shows: "the release of a lock that another request holds by then",
		Applies: func(c Card) bool { return c.Lease },
		perform: procedure{
			step: "written", contenderStops: "read", probe: true, fresh: true, contenderParams: wait(grantBound), inject: freezeHolders,
			judge: freedForeignLock,
		}.perform,
	}
}

// pause freezes the holder's process after its last check of the lock, until its lease has ended.
func pause() Experiment {
	return Experiment{
		Hazard: "pause", Title: "the holder pauses past the end of its lease, then writes", Shows: "two holders, and the late write wins",
		Applies: always, Fenced: true,
		perform: procedure{step: "writing", contenderParams: wait(grantBound), inject: freezeHolders, meanwhile: leasesEnd, lapse: pauseLapse()}.perform,
	}
}

// pauseAtRead puts the holder's late write between the contender's read and write. If a fencing
// token is not registered in the row before the read, the row accepts both writes.
func pauseAtRead() Experiment {
	return Experiment{
		Hazard: "pause-at-read", Title: "the holder pauses past the end of its lease, and writes between the contender's read and write",
		Shows: "the contender overwrites the late write, and both have sold the same piece", Applies: always, Fenced: true, ClaimedAs: "pause",
		perform: procedure{step: "writing", contenderStops: "read", contenderParams: wait(grantBound), inject: freezeHolders, meanwhile: leasesEnd, lapse: pauseLapse()}.perform,
	}
}

// pauseLapse says what happened when a holder wrote after a pause beyond its lease.
func pauseLapse() api.Text {
	return api.Text{EN: "The holder's lease expired during the pause, and it wrote anyway.", ZH: "停顿期间租期已过，持锁者醒来仍然写入。"}
}

// leasesEnd waits until the leases of strategies that are not locks have ended. With a lock, the
// grant to the next holder shows that the lease has ended.
func leasesEnd(ctx context.Context, r *round) error {
	if !slices.ContainsFunc(r.participants, func(p *participant) bool { return p.Card.Lease && !p.Card.Locker }) {
		return nil
	}
	return sleep(ctx, r.injectedAt+Lease-r.bed.since())
}

// deadWaiter does not apply to Unchecked strategies: it takes longer than their lease, which breaks
// them by itself.
func deadWaiter() Experiment {
	return Experiment{
		Hazard: "dead-waiter", Title: "a waiter in the middle of the queue is killed", Shows: "the waiter behind it enters beside the holder",
		Applies: func(c Card) bool { return c.Locker && !c.Unchecked },
		perform: procedure{
			step: "read", contenderParams: wait(ZKSession + 3*time.Second),
			inject: func(ctx context.Context, r *round) (fault.Heal, error) {
				r.send(ctx, observer, wait(30*time.Second))
				restart := func(ctx context.Context) error { return r.bed.restart(ctx, name(r.on[observer])) }
				return restart, r.awaitStep(ctx, observer, queued)
			},
			meanwhile: func(ctx context.Context, r *round) error {
				if err := r.awaitStep(ctx, contender, queued); err != nil {
					return err
				}
				_, err := killReplica(observer)(ctx, r)
				return err
			},
			explain: diedForTheHolder,
		}.perform,
	}
}

// diedForTheHolder calls a lock broken that let another request in, before the holder's lease was over, because a
// waiter died. A holder that notices this writes nothing, so no update is lost.
func diedForTheHolder(result *Result, p *participant) {
	events := result.Recording.Events
	granted := slices.IndexFunc(events, func(e history.Event) bool {
		return e.Owner == p.stopped[holder] && e.Step == string(api.Granted)
	})
	if result.Verdict != api.Safe || granted < 0 || p.ops[holder].Outcome == history.OK {
		return
	}
	if next := nextGrant(events, p.stopped[holder], events[granted].At); next > 0 && next < float64(Lease.Milliseconds()) {
		result.Verdict, result.Invariant = api.Broken, MutualExclusion
		result.Why = joined(result.Counts(), api.Textf("After the death of a waiter, another request acquired the lock %.3f s after the holder, whose lease was not over.",
			"一个等待者死去之后，另一个请求在持锁者之后 %.3f 秒拿到了锁，而持锁者的租期还没有结束。", next/1000), p.answers())
	}
}

// queued returns the step that a waiting request reports: queued at a fair lock, otherwise asked.
func queued(c Card) string {
	if c.Fair {
		return string(api.Queued)
	}
	return string(api.Asked)
}

func nesting() Experiment {
	return Experiment{
		Hazard: "nesting", Title: "the holder acquires its lock again", Shows: "a holder that waits for itself", Applies: lockers,
		perform: procedure{
			step: "asked", holderParams: url.Values{"nested": {"true"}, "wait": {(Lease / 2).String()}}, contenderParams: wait(grantBound),
			inject: resumeHolders, judge: mustSell(finding{api.Stalled, Progress, api.Text{EN: "The holder waited for its own lock.", ZH: "持锁者在等待自己的锁。"}}, holder),
		}.perform,
	}
}
