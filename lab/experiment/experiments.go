package experiment

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"time"

	"oversell/lab/history"
)

// All returns the experiments in the order of the matrix.
func All() []Experiment {
	return []Experiment{
		race(), replicaRace(), earlyRelease(), casStorm(), deadlock(), crash(), overrun(), foreignUnlock(), pause(), pauseAtRead(),
		failover(), minorityLoss(), majorityLoss(), clockJump(), sessionExpiry(), deadWaiter(), cutoff(), lostReply(),
		nesting(), polling(), herd(), writeBehind(), percentiles(), restart(), galera(), twoMasters(), staleRead(),
	}
}

func always(Card) bool    { return true }
func lockers(c Card) bool { return c.Locker }

// claimed selects the strategies whose cards make a claim about the hazard.
func claimed(hazard string) func(Card) bool {
	return func(c Card) bool { return c.Claim(hazard) != Silent }
}

// withWait returns the parameters of a request that waits that long for the lock.
func withWait(d time.Duration) func(Card) url.Values {
	return func(Card) url.Values { return url.Values{"wait": {d.String()}} }
}

// race runs two requests in one process: the second reads the stock before the first writes
// it.
func race() Experiment {
	sched := schedule{hazard: "race", step: "read", sameReplica: true, contenderParams: withWait(500 * time.Millisecond)}
	return sched.experiment(always, "two requests in one process", "a lost update: 2 sold, 1 taken from stock")
}

// replicaRace runs the same on two replicas, which share no memory.
func replicaRace() Experiment {
	sched := schedule{hazard: "replica-race", step: "read", contenderParams: withWait(500 * time.Millisecond)}
	return sched.experiment(always, "two requests on two replicas", "correct on one replica, broken on two")
}

// earlyRelease stops the holder between its release and its commit, until the contender has
// read.
func earlyRelease() Experiment {
	sched := schedule{hazard: "early-release", step: "released", sameReplica: true, contenderAt: "writing", contenderParams: withWait(5 * time.Second)}
	return sched.experiment(always, "unlock before commit", "a lost update in spite of the lock")
}

// deadlock lets two requests read before both write.
func deadlock() Experiment {
	sched := schedule{
		hazard: "deadlock", step: "read", contenderAt: "writing", contenderParams: withWait(time.Second),
		judge: func(p *participant) *finding {
			if n := p.ops[holder].Retries + p.ops[contender].Retries; n > 0 {
				return &finding{Wasteful, "", fmt.Sprintf("each request waited for the other, with %d retries; ", n)}
			}
			return nil
		},
	}
	e := sched.experiment(claimed("deadlock"), "two requests have read, and both write", "error 1213: MySQL rolls one of them back")
	return e
}

// crash kills the holder's replica while it holds the lock.
func crash() Experiment {
	sched := schedule{
		hazard: "crash", step: "granted", contenderParams: withWait(grantBound), inject: killHolders,
		judge: func(p *participant) *finding {
			if p.ops[contender].Outcome == history.OK {
				return nil
			}
			return &finding{Stalled, Progress, fmt.Sprintf("no request acquired the lock within %v after the holder was killed; ", grantBound)}
		},
	}
	return sched.experiment(always, "the holder's process is killed", "how long the others wait for the lock of a dead holder")
}

// overrun lets the holder work for longer than its lease.
func overrun() Experiment {
	sched := schedule{
		hazard: "overrun", step: "read", contenderParams: withWait(grantBound), inject: resumeHolders,
		holderParams: func(Card) url.Values { return url.Values{"hold": {(2 * Lease).String()}} },
		judge: func(p *participant) *finding {
			if p.ops[holder].Outcome == history.OK {
				return nil
			}
			return &finding{Aborted, "", "the lease expired before the work finished, and the request was rejected; "}
		},
	}
	return sched.experiment(lockers, "work longer than the lease", "the lease expires while the holder works")
}

// foreignUnlock makes the holder release a lock that the contender holds by then.
func foreignUnlock() Experiment {
	sched := schedule{
		hazard: "foreign-unlock", step: "written", contenderStops: "read", probe: true, fresh: true, contenderParams: withWait(grantBound), inject: freezeHolders,
		judge: func(p *participant) *finding {
			if p.ops[observer].Outcome == history.OK && p.ops[contender].Reason == "lost" {
				return &finding{Broken, MutualExclusion, "a third request acquired the lock while the contender held it; "}
			}
			return nil
		},
	}
	return sched.experiment(func(c Card) bool { return c.Lease }, "a late release", "the release of a lock that another request holds by then")
}

// pause pauses the holder's process past the end of its lease, after its last check.
func pause() Experiment {
	sched := schedule{hazard: "pause", step: "writing", contenderParams: withWait(grantBound), inject: freezeHolders, fenced: Protects, meanwhile: leasesEnd}
	e := sched.experiment(always, "the holder pauses past the end of its lease, then writes", "two holders, and the late write wins")
	e.Fenced = true
	return e
}

// pauseAtRead is the same pause, but the late write comes when the contender has read and not
// yet written. A fencing token that only the writes carry accepts both. The card's claim about
// a pause covers this order as well.
func pauseAtRead() Experiment {
	sched := schedule{
		hazard: "pause-at-read", claimedAs: "pause", step: "writing", contenderStops: "read",
		contenderParams: withWait(grantBound), inject: freezeHolders, fenced: Protects, meanwhile: leasesEnd,
	}
	e := sched.experiment(always, "the holder pauses past the end of its lease, and writes between the contender's read and write", "the contender overwrites the late write, and both have sold the same piece")
	e.Fenced = true
	return e
}

// leasesEnd waits until the leases have expired that no contender waits for. For a lock, the
// grant to the contender shows it.
func leasesEnd(ctx context.Context, r *run) error {
	if !slices.ContainsFunc(r.participants, func(p *participant) bool { return p.Card.Lease && !p.Card.Locker }) {
		return nil
	}
	select {
	case <-ctx.Done():
	case <-time.After(r.injectedAt + Lease - r.bed.since()):
	}
	return ctx.Err()
}

// deadWaiter kills a waiter between the holder and the contender.
func deadWaiter() Experiment {
	sched := schedule{
		hazard: "dead-waiter", step: "read", contenderParams: withWait(ZKSession + 3*time.Second),
		inject: func(ctx context.Context, r *run) (func(context.Context) error, error) {
			r.send(ctx, observer, withWait(30*time.Second))
			for _, p := range r.participants {
				if err := r.awaitStep(ctx, p, observer, queued(p.Card)); err != nil {
					return nil, err
				}
			}
			return func(ctx context.Context) error { return r.bed.restart(ctx, r.on[observer]) }, nil
		},
		meanwhile: func(ctx context.Context, r *run) error {
			for _, p := range r.participants {
				if err := r.awaitStep(ctx, p, contender, queued(p.Card)); err != nil {
					return err
				}
			}
			r.span.What, r.span.Who = "killed", name(r.on[observer])
			return r.bed.kill(r.on[observer])
		},
	}
	return sched.experiment(lockers, "a waiter in the middle of the queue is killed", "the waiter behind it enters beside the holder")
}

// queued returns the step that shows that a request waits: in a queue, where there is one.
func queued(c Card) string {
	if c.Fair {
		return "queued"
	}
	return "asked"
}

// nesting makes the holder acquire its own lock again.
func nesting() Experiment {
	sched := schedule{
		hazard: "nesting", step: "asked", contenderParams: withWait(grantBound), inject: resumeHolders,
		holderParams: func(Card) url.Values { return url.Values{"nested": {"true"}, "wait": {(Lease / 2).String()}} },
		judge: func(p *participant) *finding {
			if p.ops[holder].Outcome == history.OK {
				return nil
			}
			return &finding{Stalled, Progress, "the holder waited for itself; "}
		},
	}
	return sched.experiment(lockers, "the holder acquires its lock again", "a holder that waits for itself")
}

func (sched schedule) experiment(applies func(Card) bool, title, shows string) Experiment {
	return Experiment{Hazard: sched.hazard, Title: title, Shows: shows, Applies: applies, Fence: sched.fenced, ClaimedAs: sched.claimedAs, run: sched.run}
}
