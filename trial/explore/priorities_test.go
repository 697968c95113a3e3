package explore

import (
	"testing"

	"github.com/redis/go-redis/v9"

	"oversell/locks"
	"oversell/locks/redislock"
)

// TestRandom draws schedules of a lock that a pause breaks, and of one with a fence. The same seed draws the same
// schedules, so it finds the same.
func TestRandom(t *testing.T) {
	draw := func(strategy string, b Bounds, seed int64) Result {
		r, err := Search(t.Context(), Scope{Strategy: strategy, Bounds: b, Random: &Random{Schedules: 300, Depth: 3, Seed: seed}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if r.Schedules != 300 || r.Complete || r.Random.Steps < 5 || r.Random.Actors < b.Clients {
			t.Errorf("%d schedules, complete %v, %+v", r.Schedules, r.Complete, *r.Random)
		}
		if p := r.Random.Guarantee(); p <= 0 || p > 1.0/float64(r.Random.Steps) {
			t.Errorf("a guarantee of %g", p)
		}
		return r
	}
	paused := Bounds{Clients: 2, Pauses: 1}
	first, again, other := draw("redis-lua", paused, 1), draw("redis-lua", paused, 1), draw("redis-lua", paused, 2)
	if first.Oversold == 0 || first.Oversold != again.Oversold || first.Trail() != again.Trail() {
		t.Errorf("%d and %d of 300 schedules lose an update; %s, then %s", first.Oversold, again.Oversold, first.Trail(), again.Trail())
	}
	if first.Oversold == other.Oversold && first.Two == other.Two && first.Late == other.Late {
		t.Error("two seeds drew the same")
	}
	if r := draw("redis", Bounds{Clients: 3, Pauses: 1, Fenced: true}, 1); r.Oversold > 0 {
		t.Errorf("fenced: %d schedules lose an update; trail %s", r.Oversold, r.Trail())
	}
}

// TestForeign explores a lock of ours as one of another library: the result must be the same.
func TestForeign(t *testing.T) {
	lock := OnRedis("mine", func(c redis.UniversalClient) locks.Locker { return redislock.Lua(c, lease) })
	for _, b := range []Bounds{{Clients: 2}, {Clients: 2, Pauses: 1}} {
		own := complete(t, "redis-lua", b, false)
		r, err := Search(t.Context(), Scope{Strategy: "mine", Lock: &lock, Bounds: b}, nil)
		if err != nil || r.Counts()[0] != own.Counts()[0] || r.Schedules != own.Schedules {
			t.Errorf("%s: %d of %d schedules lose an update, of redis-lua %d of %d; %v", b, r.Oversold, r.Schedules, own.Oversold, own.Schedules, err)
		}
	}
	if s := (Scope{Strategy: "mine", Lock: &lock, Bounds: Bounds{Fenced: true}}); s.Supported() == nil {
		t.Errorf("%+v is supported", s)
	}
}
