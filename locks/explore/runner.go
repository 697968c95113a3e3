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
	build   catalog.Constructor // of the strategy
	card    api.Card
	scripts map[string]string
	scale   time.Duration // how many times longer leases and waits are
}

func newRunner(t Scope) (*runner, error) {
	if t.Lock != nil && t.Supported() == nil {
		return &runner{t, t.Lock.build, t.Lock.Card, nil, scale(t.Lock.Card.Backends)}, nil
	}
	if err := Supports(t.Strategy, t.Bounds.Fenced); err != nil {
		return nil, err
	}
	card, _ := cardOf(t.Strategy)
	scripts, err := redislock.Scripts()
	build, _ := catalog.ConstructorOf(t.Strategy)
	return &runner{t, build, card, scripts, scale(card.Backends)}, err
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
	case slices.Contains(r.card.Backends, "redlock") && r.card.BrokenBy(api.MinorityLoss):
		return 2
	case slices.Contains(r.card.Backends, "redlock"):
		return redisServers
	case slices.Contains(r.card.Backends, "redis"):
		return 1
	}
	return 0
}

// Supported returns an error if the explorer has no servers for the lock, or the lock has no fence.
func (t Scope) Supported() error {
	switch {
	case t.Lock == nil:
		return Supports(t.Strategy, t.Bounds.Fenced)
	case t.Bounds.Fenced:
		return fmt.Errorf("explore: %s has no fencing token", t.Strategy)
	case t.MySQL != "":
		return fmt.Errorf("explore: %s runs in memory only", t.Strategy)
	}
	return nil
}

// Supports returns an error if the explorer has no servers for a strategy, or its lock has no fence.
func Supports(strategy string, fenced bool) error {
	card, ok := cardOf(strategy)
	switch {
	case !ok:
		return fmt.Errorf("explore: there is no strategy %q", strategy)
	case card.Unrepeatable:
		return fmt.Errorf("explore: %s cannot be explored: it draws rows at random, or each of its tries has another effect", strategy)
	case card.Family == "mysql" || card.Family == "local":
	case card.Family == "zookeeper" || card.Family == "etcd":
	case card.Family == "redis" && !slices.Contains(card.Protects, api.WriteBehind): // that needs tables in MySQL beside the stock in Redis
	default:
		return fmt.Errorf("explore: %s runs on servers that the explorer does not have yet", strategy)
	}
	if fenced && !card.Fenced {
		return fmt.Errorf("explore: %s has no fencing token", strategy)
	}
	return nil
}

func cardOf(strategy string) (api.Card, bool) {
	for _, c := range catalog.Cards() {
		if c.ID == strategy {
			return c, true
		}
	}
	return api.Card{}, false
}

func scale(backends []string) time.Duration {
	if slices.Contains(backends, "etcd") {
		return slower
	}
	return 1
}
