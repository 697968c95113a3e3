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
	scale   time.Duration // how many times longer leases and waits are
}

func newRunner(t Scope) (*runner, error) {
	if err := t.Supported(); err != nil {
		return nil, err
	}
	lock, _ := t.find() // Supported has found it
	r := &runner{Scope: t, lock: lock, scripts: redislock.Scripts(), scale: 1}
	if slices.Contains(lock.Card.Backends, "etcd") {
		r.scale = slower
	}
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
	case card.Unrepeatable:
		return fmt.Errorf("explore: %s cannot be explored: it draws rows at random, or each of its tries has another effect", card.ID)
	case slices.Contains(card.Protects, api.WriteBehind): // that needs tables in MySQL beside the stock in Redis
		return fmt.Errorf("explore: %s runs on servers that the explorer does not have yet", card.ID)
	case t.Bounds.Fenced && !card.Fenced:
		return fmt.Errorf("explore: %s has no fencing token", card.ID)
	case t.Lock != nil && t.MySQL != "":
		return fmt.Errorf("explore: %s runs in memory only", card.ID)
	}
	return nil
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
