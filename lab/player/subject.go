package player

import (
	"slices"
	"strings"
	"time"

	"oversell/api"
	"oversell/lab/chaos"
	"oversell/lab/history"
	"oversell/lab/rig"
)

// Subject is a strategy in an experiment, with or without its fence.
type Subject struct {
	Card    api.Card
	Fenced  bool
	Product int64
	lease   time.Duration // the lease of the strategy's locks; 0 means the default of the replica
	// Primitive is not nil for a semaphore or a read-write lock, which only random plans have as a subject.
	Primitive *Primitive
}

// Key returns the key of the lock of the product.
func (s Subject) Key() string { return api.Key(s.Product) }

// Name returns the strategy's id, with " --fenced" for a fenced run.
func (s Subject) Name() string {
	if s.Fenced {
		return s.Card.ID + " --fenced"
	}
	return s.Card.ID
}

// Leased returns the recording with the lease of the strategy's lock in a testbed. A lock on
// ZooKeeper lasts as long as its session. Recordings of earlier versions lack the lease.
func Leased(c api.Card, rec history.Recording) history.Recording {
	switch {
	case !c.Locker:
	case c.Uses("zookeeper"):
		rec.Lease, rec.Renews = ZKSession, true
	case c.Lease:
		rec.Lease, rec.Renews = Lease, c.Renews
	}
	return rec
}

// LockOf returns what package chaos must know to draw plans for a strategy.
func (bed *Testbed) LockOf(s Subject) chaos.Lock {
	steps := StepsOf(s.Card)
	if s.Primitive != nil {
		steps = []api.Step{api.Granted}
	}
	return chaos.Lock{
		Name: s.Name(), Steps: steps, Faults: bed.FaultsFor(s.Card), Servers: len(bed.lockServers(s.Card)), Locker: s.Card.Locker, Nests: s.Card.Reentrant,
		Expires: s.Card.Lease && !s.Card.Renews, Fenced: s.Fenced, Begins: s.Begins(), Leases: s.Card.Uses("redis"),
	}
}

// StepsOf returns the steps at which a request stops, in their order.
func StepsOf(c api.Card) []api.Step {
	steps := []api.Step{api.Asked}
	for _, b := range c.Breaks { // at a step of its own, before the grant or in the critical section
		if b.At != "" && chaos.PhaseAfter(b.At) == chaos.Wait {
			steps = append(steps, b.At)
		}
	}
	if at := c.CriticalStep; at != "" && chaos.PhaseAfter(at) == chaos.Wait {
		steps = append(steps, at)
	}
	return append(slices.Compact(steps), api.Granted, api.Read, api.Writing, api.Written)
}

// FaultsFor returns the faults that can strike a strategy. A lock in one process has no servers.
func (bed *Testbed) FaultsFor(c api.Card) []chaos.Verb {
	if c.Scope == api.ScopeProcess || c.Scope == api.ScopeNone {
		return []chaos.Verb{chaos.Freezes, chaos.Starves, chaos.Dies}
	}
	return slices.DeleteFunc(chaos.Faults(), func(v chaos.Verb) bool {
		named := v != chaos.Holds && v != chaos.Loses || c.Locker                                      // the commands of other strategies do not name their key
		row := v != chaos.HoldsRow || c.Locker && c.Family != handFamily && c.LockService() != "mysql" // there, Holds strikes the row as well
		return !named || !row || v == chaos.FailsOver && !c.Uses("redis") || v == chaos.Deletes && !c.InServer() || v == chaos.Jumps && c.LockService() != "redis"
	})
}

// lockServers returns the servers of a strategy's lock, or of its stock if it is no lock.
func (bed *Testbed) lockServers(c api.Card) (servers []*rig.Server) {
	for _, s := range bed.Rig.Servers() {
		several := c.Uses("redlock") || rig.Kind(s.Name()) != "redis" && c.LockService() != "mysql"
		if rig.Kind(s.Name()) == c.LockService() && !strings.HasSuffix(s.Name(), "replica") && (several || len(servers) == 0) {
			servers = append(servers, s)
		}
	}
	return servers
}
