package explore

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"

	"oversell/api"
	"oversell/locks/catalog"
	"oversell/locks/redislock"
)

// runner executes schedules of a scope, each from the beginning.
type runner struct {
	Scope
	lock    Lock
	scripts map[string]string
}

func newRunner(t Scope) (*runner, error) {
	if err := t.Supported(); err != nil {
		return nil, err
	}
	lock, _ := t.find() // Supported has found it
	r := &runner{Scope: t, lock: lock, scripts: redislock.Scripts()}
	return r, nil
}

// redisServers is the number of independent Redis for redlock. A majority of three is two.
const redisServers = 3

// run executes one schedule. choose gets the possible moves, and returns the index of the next one, or
// -1 to end the schedule early. The clients run the code of the strategy as the replicas do, each
// with its own connections, in a bubble with a clock of its own.
func (r *runner) run(choose func([]move) int) (o Ending, complete bool, err error) {
	minis := make([]*miniredis.Miniredis, r.servers())
	for i := range minis {
		if minis[i], err = startRedis(); err != nil {
			return o, false, err
		}
	}
	synctest.Test(&testing.T{}, func(*testing.T) {
		w := newWorld(r.Bounds.Clients, len(minis))
		for i, s := range w.redis {
			s.mini, s.files = minis[i], r.scripts
			s.mini.SetTime(time.Now())
		}
		x := &schedule{runner: r, world: w, left: r.Bounds}
		o, complete, err = x.run(choose)
	})
	return o, complete, err
}

// servers returns the number of Redis servers. A lock that needs all servers needs no third one.
func (r *runner) servers() int {
	switch {
	case slices.Contains(r.lock.Card.Backends, "redlock") && r.lock.Card.BrokenBy(api.MinorityLoss):
		return 2
	case slices.Contains(r.lock.Card.Backends, "redlock"):
		return redisServers
	case slices.Contains(r.lock.Card.Backends, "redis"):
		return 1
	}
	return 0
}

// Supported returns an error if the explorer has no servers for the lock, or the lock has no fence.
func (t Scope) Supported() error {
	lock, err := t.find()
	card := lock.Card
	switch {
	case err != nil:
		return err
	case !enoughInMemory(card):
		return fmt.Errorf("explore: %s needs a server that explore does not have in memory: try \"oversell break race %[1]s\" or \"oversell step %[1]s\"", card.ID)
	case t.Bounds.Fenced && !card.Fenced:
		return fmt.Errorf("explore: %s has no fencing token", card.ID)
	}
	return nil
}

// enoughInMemory reports whether the servers in memory are enough for a lock. Of MySQL, there is one row without transactions.
func enoughInMemory(card api.Card) bool {
	transactions := card.Family == "mysql" || card.BrokenBy(api.EarlyRelease) || slices.Contains(card.Protects, api.WriteBehind)
	return !transactions && !slices.Contains(card.Backends, "etcd")
}

// find returns the lock of a scope, or the strategy of the catalogue.
func (t Scope) find() (Lock, error) {
	if t.Lock != nil {
		return *t.Lock, nil
	}
	build, ok := catalog.ConstructorOf(t.Strategy)
	if !ok {
		return Lock{}, fmt.Errorf("explore: there is no strategy %q", t.Strategy)
	}
	return Lock{build(catalog.Backends{}).Card(), build}, nil
}
