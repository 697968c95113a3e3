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
func patient(d time.Duration) func(Card) url.Values {
	return func(Card) url.Values { return url.Values{"wait": {d.String()}} }
}

// race is two requests inside one process: the second reads what the first has read,
// before the first writes.
func race() Experiment {
	d := duel{number: 1, hazard: "race", step: "read", sameReplica: true, rival: patient(500 * time.Millisecond)}
	return d.experiment(always, "two requests in one process", "one of two sales leaves no trace in the stock")
}

// replicaRace is the same on two replicas: what one process knows, the other doesn't.
func replicaRace() Experiment {
	d := duel{number: 2, hazard: "replica-race", step: "read", rival: patient(500 * time.Millisecond)}
	return d.experiment(always, "two requests on two replicas", "right on one replica, wrong on two")
}

// earlyRelease holds the victim up between its unlock and its commit, until the rival
// has read.
func earlyRelease() Experiment {
	d := duel{number: 3, hazard: "early-release", step: "released", sameReplica: true, rivalAt: "writing", rival: patient(5 * time.Second)}
	return d.experiment(always, "unlock before commit", "locked, and oversold all the same")
}

// deadlock lets two readers both want to write.
func deadlock() Experiment {
	d := duel{
		number: 5, hazard: "deadlock", step: "read", rivalAt: "writing", rival: patient(time.Second),
		judge: func(p *player) *finding {
			if n := p.ops[victim].Retries + p.ops[rival].Retries; n > 0 {
				return &finding{Wasteful, "", fmt.Sprintf("each waited for the other, and %d began anew; ", n)}
			}
			return nil
		},
	}
	e := d.experiment(claimed("deadlock"), "two have read, and both want to write", "error 1213: one of two is the victim")
	return e
}

// crash kills the victim's replica while it holds the lock.
func crash() Experiment {
	d := duel{
		number: 7, hazard: "crash", step: "granted", rival: patient(bound), strike: killVictim,
		judge: func(p *player) *finding {
			if p.ops[rival].Outcome == history.OK {
				return nil
			}
			return &finding{Stalled, "I4", fmt.Sprintf("nobody got the lock within %v after its holder had died; ", bound)}
		},
	}
	return d.experiment(always, "the holder's process is killed", "how long the others wait for a dead holder")
}

// overrun lets the victim work for longer than its lease.
func overrun() Experiment {
	d := duel{
		number: 8, hazard: "overrun", step: "read", rival: patient(bound), strike: wake,
		victim: func(Card) url.Values { return url.Values{"hold": {(2 * Lease).String()}} },
		judge: func(p *player) *finding {
			if p.ops[victim].Outcome == history.OK {
				return nil
			}
			return &finding{Aborted, "", "the lock ran out under the work, which was for nothing; "}
		},
	}
	return d.experiment(lockers, "work longer than the lease", "the lease ends while the holder works")
}

// foreignUnlock has the victim release a lock that is its rival's by now.
func foreignUnlock() Experiment {
	d := duel{
		number: 8, hazard: "foreign-unlock", step: "written", rivalStops: "read", intruder: true, fresh: true, rival: patient(bound), strike: freeze,
		judge: func(p *player) *finding {
			if p.ops[third].Outcome == history.OK && p.ops[rival].Reason == "lost" {
				return &finding{Violated, "I2", "a third one got in beside the rival; "}
			}
			return nil
		},
	}
	return d.experiment(func(c Card) bool { return c.Lease }, "a late release", "the release of a lock that another one holds by now")
}

// pause stops the victim's process past its lease, after its last look at the clock.
func pause() Experiment {
	d := duel{number: 9, hazard: "pause", step: "writing", rival: patient(bound), strike: freeze, fenced: Protects, meanwhile: leasesEnd}
	e := d.experiment(always, "the holder sleeps past its lease, then writes", "two holders, and the late write wins")
	e.Fenced = true
	return e
}

// pauseAtRead is the same pause with the rival elsewhere: it has read, and not yet written,
// when the victim's late write comes. A fence that only the writes carry passes both. What a
// card says about a pause holds for this order as well.
func pauseAtRead() Experiment {
	d := duel{
		number: 24, hazard: "pause-at-read", claimedAs: "pause", step: "writing", rivalStops: "read",
		rival: patient(bound), strike: freeze, fenced: Protects, meanwhile: leasesEnd,
	}
	e := d.experiment(always, "the holder sleeps past its lease, and writes between its rival's read and write", "the rival overwrites the late write, and both have sold the same piece")
	e.Fenced = true
	return e
}

// leasesEnd waits until those have run out for which no rival waits: of a lock, a rival's
// grant shows that its lease is over.
func leasesEnd(ctx context.Context, f *fight) error {
	if !slices.ContainsFunc(f.players, func(p *player) bool { return p.Card.Lease && !p.Card.Locker }) {
		return nil
	}
	select {
	case <-ctx.Done():
	case <-time.After(f.struck + Lease - f.class.since()):
	}
	return ctx.Err() //nolint:wrapcheck // says all
}

// deadWaiter kills one who waits between the holder and the rival.
func deadWaiter() Experiment {
	d := duel{
		number: 15, hazard: "dead-waiter", step: "read", rival: patient(ZKSession + 3*time.Second),
		strike: func(ctx context.Context, f *fight) (func(context.Context) error, error) {
			f.send(ctx, third, patient(30*time.Second))
			for _, p := range f.players {
				if err := f.reached(ctx, p, third, queued(p.Card)); err != nil {
					return nil, err
				}
			}
			return func(ctx context.Context) error { return f.class.restart(ctx, f.on[third]) }, nil
		},
		meanwhile: func(ctx context.Context, f *fight) error {
			for _, p := range f.players {
				if err := f.reached(ctx, p, rival, queued(p.Card)); err != nil {
					return err
				}
			}
			f.span.What, f.span.Who = "killed", name(f.on[third])
			return f.class.kill(f.on[third])
		},
	}
	return d.experiment(lockers, "a waiter in the middle dies", "the one behind it enters beside the holder")
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
	d := duel{
		number: 18, hazard: "nesting", step: "asked", rival: patient(bound), strike: wake,
		victim: func(Card) url.Values { return url.Values{"nested": {"true"}, "wait": {(Lease / 2).String()}} },
		judge: func(p *player) *finding {
			if p.ops[victim].Outcome == history.OK {
				return nil
			}
			return &finding{Stalled, "I4", "the owner waited for itself; "}
		},
	}
	return d.experiment(lockers, "the owner acquires again", "a holder that waits for itself")
}

func (d duel) experiment(applies func(Card) bool, title, shows string) Experiment {
	return Experiment{Number: d.number, Hazard: d.hazard, Title: title, Shows: shows, Applies: applies, Fence: d.fenced, ClaimedAs: d.claimedAs, run: d.run}
}
