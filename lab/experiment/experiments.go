package experiment

import (
	"context"
	"fmt"
	"net/url"
	"syscall"
	"time"
)

// All are the experiments, by their number.
func All() []Experiment {
	return []Experiment{race(), replicaRace(), earlyRelease(), crash(), overrun(), pause(), nesting()}
}

func always(Card) bool    { return true }
func lockers(c Card) bool { return c.Locker }

// patient gives a request so long to wait for the lock.
func patient(d time.Duration) func(Card) url.Values {
	return func(Card) url.Values { return url.Values{"wait": {d.String()}} }
}

// race is two requests inside one process: the second reads what the first has read,
// before the first writes.
func race() Experiment {
	d := duel{number: 1, hazard: "race", step: "read", sameReplica: true, rival: patient(500 * time.Millisecond)}
	return Experiment{
		Number: 1, Hazard: "race", Applies: always, run: d.run,
		Title: "two requests in one process", Shows: "one of two sales leaves no trace in the stock",
	}
}

// replicaRace is the same on two replicas: what one process knows, the other doesn't.
func replicaRace() Experiment {
	d := duel{number: 2, hazard: "replica-race", step: "read", rival: patient(500 * time.Millisecond)}
	return Experiment{
		Number: 2, Hazard: "replica-race", Applies: always, run: d.run,
		Title: "two requests on two replicas", Shows: "right on one replica, wrong on two",
	}
}

// earlyRelease holds the victim up between its unlock and its commit.
func earlyRelease() Experiment {
	d := duel{number: 3, hazard: "early-release", step: "released", sameReplica: true, rival: patient(2 * time.Second)}
	return Experiment{
		Number: 3, Hazard: "early-release", Applies: always, run: d.run,
		Title: "unlock before commit", Shows: "locked, and oversold all the same",
	}
}

// crash kills the victim's replica while it holds the lock.
func crash() Experiment {
	d := duel{number: 7, hazard: "crash", step: "granted", gone: true, rival: patient(bound), strike: kill}
	return Experiment{
		Number: 7, Hazard: "crash", Applies: always, run: d.run,
		Title: "the holder's process is killed", Shows: "how long the others wait for a dead holder",
	}
}

// overrun lets the victim work for longer than its lease.
func overrun() Experiment {
	d := duel{
		number: 8, hazard: "overrun", step: "read", rival: patient(bound),
		victim: func(Card) url.Values { return url.Values{"hold": {(2 * Lease).String()}} },
		strike: func(ctx context.Context, c *Class, victims int) (func(context.Context) error, error) {
			// The work begins: nobody is held up any more.
			return func(context.Context) error { return nil }, c.goOn(ctx, victims)
		},
	}
	return Experiment{
		Number: 8, Hazard: "overrun", Applies: lockers, run: d.run,
		Title: "work longer than the lease", Shows: "the lease ends, the next one works beside the holder",
	}
}

// pause stops the victim's process past its lease, after its last look at the clock.
func pause() Experiment {
	d := duel{number: 9, hazard: "pause", step: "writing", rival: patient(bound), strike: freeze}
	return Experiment{
		Number: 9, Hazard: "pause", Applies: always, Fenced: true, run: d.run,
		Title: "the holder sleeps past its lease, then writes", Shows: "two holders, and the late write wins",
	}
}

// nesting has the holder ask for its own lock again.
func nesting() Experiment {
	d := duel{
		number: 18, hazard: "nesting", step: "asked", rival: patient(bound),
		victim: func(Card) url.Values { return url.Values{"nested": {"true"}, "wait": {(Lease / 2).String()}} },
		strike: func(ctx context.Context, c *Class, victims int) (func(context.Context) error, error) {
			return func(context.Context) error { return nil }, c.goOn(ctx, victims)
		},
	}
	return Experiment{
		Number: 18, Hazard: "nesting", Applies: lockers, run: d.run,
		Title: "the owner acquires again", Shows: "a holder that waits for itself",
	}
}

// freeze stops a replica as a long garbage collection or a sleeping laptop does, until
// every lease of its holders is over.
func freeze(_ context.Context, c *Class, replica int) (func(context.Context) error, error) {
	server, err := c.Rig.Server(name(replica))
	if err != nil {
		return nil, err
	}
	group := -server.PID()
	if err := syscall.Kill(group, syscall.SIGSTOP); err != nil {
		return nil, fmt.Errorf("stop %s: %w", name(replica), err)
	}
	return func(context.Context) error { return syscall.Kill(group, syscall.SIGCONT) }, nil
}

// kill ends a replica as a power cut does. Healing starts it again.
func kill(_ context.Context, c *Class, replica int) (func(context.Context) error, error) {
	server, err := c.Rig.Server(name(replica))
	if err != nil {
		return nil, err
	}
	server.Kill()
	return func(ctx context.Context) error {
		if err := server.Start(ctx); err != nil {
			return err
		}
		return c.ready(ctx, replica)
	}, nil
}
