package experiment

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"time"

	"oversell/lab/history"
)

// All are the experiments, by their number.
func All() []Experiment {
	return []Experiment{
		race(), replicaRace(), earlyRelease(), casStorm(), deadlock(), crash(), overrun(), foreignUnlock(), pause(), pauseAtRead(),
		failover(), minorityLoss(), majorityLoss(), clockJump(), sessionExpiry(), deadWaiter(), cutoff(), lostReply(),
		nesting(), polling(), herd(), writeBehind(), percentiles(), restart(), galera(), twoMasters(), staleRead(),
	}
}

func always(Card) bool    { return true }
func lockers(c Card) bool { return c.Locker }

// claimed are those whose cards speak of the hazard.
func claimed(hazard string) func(Card) bool {
	return func(c Card) bool { return c.Claim(hazard) != Silent }
}

// patient gives a request so long to wait for the lock.
func withWait(d time.Duration) func(Card) url.Values {
	return func(Card) url.Values { return url.Values{"wait": {d.String()}} }
}

// race is two requests inside one process: the second reads what the first has read,
// before the first writes.
func race() Experiment {
	sched := schedule{hazard: "race", step: "read", sameReplica: true, contenderParams: withWait(500 * time.Millisecond)}
	return sched.experiment(always, "two requests in one process", "one of two sales leaves no trace in the stock")
}

// replicaRace is the same on two replicas: what one process knows, the other doesn't.
func replicaRace() Experiment {
	sched := schedule{hazard: "replica-race", step: "read", contenderParams: withWait(500 * time.Millisecond)}
	return sched.experiment(always, "two requests on two replicas", "right on one replica, wrong on two")
}

// earlyRelease holds the victim up between its unlock and its commit, until the rival
// has read.
func earlyRelease() Experiment {
	sched := schedule{hazard: "early-release", step: "released", sameReplica: true, contenderAt: "writing", contenderParams: withWait(5 * time.Second)}
	return sched.experiment(always, "unlock before commit", "locked, and oversold all the same")
}

// deadlock lets two readers both want to write.
func deadlock() Experiment {
	sched := schedule{
		hazard: "deadlock", step: "read", contenderAt: "writing", contenderParams: withWait(time.Second),
		judge: func(p *participant) *finding {
			if n := p.ops[holder].Retries + p.ops[contender].Retries; n > 0 {
				return &finding{Wasteful, "", fmt.Sprintf("each waited for the other, and %d began anew; ", n)}
			}
			return nil
		},
	}
	e := sched.experiment(claimed("deadlock"), "two have read, and both want to write", "error 1213: one of two is the victim")
	return e
}

// crash kills the victim's replica while it holds the lock.
func crash() Experiment {
	sched := schedule{
		hazard: "crash", step: "granted", contenderParams: withWait(grantBound), inject: killHolders,
		judge: func(p *participant) *finding {
			if p.ops[contender].Outcome == history.OK {
				return nil
			}
			return &finding{Stalled, Progress, fmt.Sprintf("nobody got the lock within %v after its holder had died; ", grantBound)}
		},
	}
	return sched.experiment(always, "the holder's process is killed", "how long the others wait for a dead holder")
}

// overrun lets the victim work for longer than its lease.
func overrun() Experiment {
	sched := schedule{
		hazard: "overrun", step: "read", contenderParams: withWait(grantBound), inject: resumeHolders,
		holderParams: func(Card) url.Values { return url.Values{"hold": {(2 * Lease).String()}} },
		judge: func(p *participant) *finding {
			if p.ops[holder].Outcome == history.OK {
				return nil
			}
			return &finding{Aborted, "", "the lock ran out under the work, which was for nothing; "}
		},
	}
	return sched.experiment(lockers, "work longer than the lease", "the lease ends while the holder works")
}

// foreignUnlock has the victim release a lock that is its rival's by now.
func foreignUnlock() Experiment {
	sched := schedule{
		hazard: "foreign-unlock", step: "written", contenderStops: "read", probe: true, fresh: true, contenderParams: withWait(grantBound), inject: freezeHolders,
		judge: func(p *participant) *finding {
			if p.ops[observer].Outcome == history.OK && p.ops[contender].Reason == "lost" {
				return &finding{Broken, MutualExclusion, "a third one got in beside the rival; "}
			}
			return nil
		},
	}
	return sched.experiment(func(c Card) bool { return c.Lease }, "a late release", "the release of a lock that another one holds by now")
}

// pause stops the victim's process past its lease, after its last look at the clock.
func pause() Experiment {
	sched := schedule{hazard: "pause", step: "writing", contenderParams: withWait(grantBound), inject: freezeHolders, fenced: Protects, meanwhile: leasesEnd}
	e := sched.experiment(always, "the holder sleeps past its lease, then writes", "two holders, and the late write wins")
	e.Fenced = true
	return e
}

// pauseAtRead is the same pause with the rival elsewhere: it has read, and not yet written,
// when the victim's late write comes. A fence that only the writes carry passes both. What a
// card says about a pause holds for this order as well.
func pauseAtRead() Experiment {
	sched := schedule{
		hazard: "pause-at-read", claimedAs: "pause", step: "writing", contenderStops: "read",
		contenderParams: withWait(grantBound), inject: freezeHolders, fenced: Protects, meanwhile: leasesEnd,
	}
	e := sched.experiment(always, "the holder sleeps past its lease, and writes between its rival's read and write", "the rival overwrites the late write, and both have sold the same piece")
	e.Fenced = true
	return e
}

// leasesEnd waits until those have run out for which no rival waits: of a lock, a rival's
// grant shows that its lease is over.
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

// deadWaiter kills one who waits between the holder and the rival.
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
	return sched.experiment(lockers, "a waiter in the middle dies", "the one behind it enters beside the holder")
}

// queued is the step that shows a waiter's place in the line, where there is one.
func queued(c Card) string {
	if c.Fair {
		return "queued"
	}
	return "asked"
}

// nesting has the holder ask for its own lock again.
func nesting() Experiment {
	sched := schedule{
		hazard: "nesting", step: "asked", contenderParams: withWait(grantBound), inject: resumeHolders,
		holderParams: func(Card) url.Values { return url.Values{"nested": {"true"}, "wait": {(Lease / 2).String()}} },
		judge: func(p *participant) *finding {
			if p.ops[holder].Outcome == history.OK {
				return nil
			}
			return &finding{Stalled, Progress, "the owner waited for itself; "}
		},
	}
	return sched.experiment(lockers, "the owner acquires again", "a holder that waits for itself")
}

func (sched schedule) experiment(applies func(Card) bool, title, shows string) Experiment {
	return Experiment{Hazard: sched.hazard, Title: title, Shows: shows, Applies: applies, Fence: sched.fenced, ClaimedAs: sched.claimedAs, run: sched.run}
}
