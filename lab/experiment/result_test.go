package experiment

import (
	"slices"
	"strings"
	"testing"

	"oversell/api"
)

func TestCommand(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		result          Result
		command, repeat string
	}{
		{
			Result{Hazard: "pause", Strategy: "redis", Fenced: true, Seed: 3},
			"oversell break pause redis --fenced", "oversell break pause redis --fenced --seed 3",
		},
		{
			Result{Hazard: "pause", Strategy: "adapter", Seed: 3, Adapter: "python3 lock.py --fast"},
			"oversell judge --hazard pause -- python3 lock.py --fast", "oversell judge --hazard pause --seed 3 -- python3 lock.py --fast",
		},
		{
			Result{Hazard: Made, Strategy: "redis", Fenced: true, Plan: "A sells"},
			"oversell break --plan 'A sells' redis --fenced", "oversell break --plan 'A sells' redis --fenced",
		},
	} {
		if c, r := test.result.Command(), test.result.Repeat(); c != test.command || r != test.repeat {
			t.Errorf("got %q and %q, want %q and %q", c, r, test.command, test.repeat)
		}
	}
}

func TestHazardsOf(t *testing.T) {
	t.Parallel()
	lock := api.Card{ID: "adapter", Family: "adapter", Locker: true, Lease: true, Backends: []string{"mysql", "redis"}}
	got := HazardsOf(lock)
	lock.Unchecked = true
	if slices.Contains(HazardsOf(lock), "herd") {
		t.Error("herd applies to a lock whose lease ends during the measurement")
	}
	for hazard, want := range map[api.Hazard]bool{
		"race": true, "pause": true, "crash": true, "overrun": true, "failover": true, "cutoff": true, "foreign-unlock": true,
		"lost-reply": true, "herd": true, // also without a claim
		"session-expiry": false, "galera": false, "minority-loss": false,
	} {
		if slices.Contains(got, hazard) != want {
			t.Errorf("%s: want %v in %v", hazard, want, got)
		}
	}
}

// TestAdapterSubjects checks that a lock with fences runs with and without its fence.
func TestAdapterSubjects(t *testing.T) {
	t.Parallel()
	cards := []api.Card{{ID: "adapter", Locker: true, Fenced: true}, {ID: "redis", Locker: true, Fenced: true}}
	for adapter, want := range map[string]int{"": 1, "python3 lock.py": 2} {
		if got := (Selection{Strategies: []string{"adapter"}, Adapter: adapter}).subjects(pause(), cards); len(got) != want {
			t.Errorf("adapter %q: %d subjects, want %d", adapter, len(got), want)
		}
	}
}

// TestPlanned checks that the plan of a run is the one that its seed has chosen, with the steps of its strategy.
func TestPlanned(t *testing.T) {
	atomic := api.Card{ID: "atomic", CriticalStep: api.Writing}
	for seed, dies := range map[int64]string{0: "0.5", 1: "3.5", 3: "0.5"} {
		r := Result{Hazard: "crash", Strategy: "atomic", Seed: seed}.Planned(atomic)
		if want := "A sells at writing, " + dies + " leases pass if renewed, A dies, B sells, B ends"; r.Hazard != Made || r.Plan != want {
			t.Errorf("seed %d: %s, %q, want %q", seed, r.Hazard, r.Plan, want)
		}
	}
	onRow := api.Card{Family: "adapter", Backends: []string{"mysql"}}
	if r := (Result{Hazard: "cutoff", Adapter: "lock"}).Planned(onRow); !strings.Contains(r.Plan, "A holds 1") {
		t.Errorf("the plan of a lock on the row is %q", r.Plan)
	}
	for _, r := range []Result{{Hazard: "herd"}, {Hazard: Chaos, Plan: "A sells"}} {
		if got := r.Planned(atomic); got.Plan != r.Plan || got.Hazard != r.Hazard {
			t.Errorf("%+v became %+v", r, got)
		}
	}
}

// TestVerdictsWithoutAllEvents checks that a recording with lost events proves neither that a run
// was safe nor that there were two holders.
func TestVerdictsWithoutAllEvents(t *testing.T) {
	for _, test := range []struct {
		verdict   api.Verdict
		invariant string
		want      api.Verdict
	}{
		{api.Safe, "", api.Inconclusive},
		{api.NotShown, "", api.Inconclusive},
		{api.Broken, MutualExclusion, api.Inconclusive},
		{api.Broken, Conservation, api.Broken},
		{api.Stalled, Progress, api.Stalled},
		{api.Inconclusive, "", api.Inconclusive},
	} {
		whole := Result{Verdict: test.verdict, Invariant: test.invariant, Why: api.Text{EN: "a reason"}}
		if got := whole.withLostEvents(0); got.Verdict != test.verdict || got.Why != whole.Why {
			t.Errorf("%s with all events became %s: %s", test.verdict, got.Verdict, got.Why)
		}
		if got := whole.withLostEvents(3); got.Verdict != test.want || !strings.HasPrefix(got.Why.EN, "3 or more events") {
			t.Errorf("%s (%s) became %s, want %s: %s", test.verdict, test.invariant, got.Verdict, test.want, got.Why)
		}
	}
}
