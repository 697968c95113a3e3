package experiment

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"oversell/lab/history"
	"oversell/lab/rig"
	"oversell/lab/rig/rigtest"
)

// TestPairs runs strategies on two databases, where a row lock is local to its node. Galera is safe
// with a lock outside the database. Two masters with a lag are unsafe even with such a lock: the
// next holder still reads an old row. With a follower, a strategy is safe only if it reads in the
// transaction that writes, or checks a version.
func TestPairs(t *testing.T) {
	bed := open(t)
	databases := map[string]rig.Database{"galera": rig.Galera, "two-masters": rig.TwoMasters, "stale-read": rig.DelayedReads}
	for hazard, want := range map[string]map[string]Verdict{
		"galera":      {"for-update": Wasteful, "redis": Safe},
		"two-masters": {"for-update": Broken, "redis": Broken},
		"stale-read":  {"for-update": Safe, "version": Safe, "redis": Broken, "db-row-fair": Broken},
	} {
		t.Run(hazard, func(t *testing.T) {
			rigtest.NeedsPair(t, databases[hazard])
			store := &ResultStore{}
			if err := Run(t.Context(), bed, Plan{Hazards: []string{hazard}, Strategies: slices.Collect(maps.Keys(want)), Seed: 1}, store, silent{}); err != nil {
				t.Fatal(err)
			}
			if len(store.Results()) != len(want) {
				t.Errorf("%d results, want %d", len(store.Results()), len(want))
			}
			for _, result := range store.Results() {
				if result.Verdict != want[result.Strategy] {
					t.Errorf("%s: %q, want %q: %s", result.Strategy, result.Verdict, want[result.Strategy], result.Why)
				}
				if !strings.Contains(result.MySQL, "MariaDB") {
					t.Errorf("%s ran on %q, and MySQL has no such pair", result.Strategy, result.MySQL)
				}
			}
		})
	}
}

func TestGrantedAnew(t *testing.T) {
	step := func(owner, step string) history.Event { return history.Event{Owner: owner, Step: step} }
	for _, test := range []struct {
		name   string
		events []history.Event
		want   int
	}{
		{"no events", nil, 0},
		{"one after the other", []history.Event{step("a", "granted"), step("a", "released"), step("b", "granted")}, 0},
		{"one waited", []history.Event{step("a", "granted"), step("b", "asked"), step("b", "granted")}, 0},
		{"one was rolled back twice", []history.Event{step("a", "granted"), step("b", "granted"), step("a", "granted"), step("a", "granted")}, 2},
	} {
		if got := grantedAnew(test.events); got != test.want {
			t.Errorf("%s: %d, want %d", test.name, got, test.want)
		}
	}
}
