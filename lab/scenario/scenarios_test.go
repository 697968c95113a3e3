package scenario

import (
	"os"
	"testing"

	"oversell/lab/rig"
	"oversell/lab/rig/rigtest"
)

func TestMain(m *testing.M) { rigtest.Main(m) }

// TestScenarios runs each scenario with each guard, on as many replicas as Tickets needs. In every run, a
// safe guard must keep the scenario's invariant, and an unsafe guard must break it. make test has the first
// guard of each scenario, which is none, and the last, which is safe.
func TestScenarios(t *testing.T) {
	cfg := rig.FullLab("", "test-token")
	cfg.Replicas = windows
	lab := rigtest.Start(t, rigtest.Guest(cfg))
	service := Connect(lab.Addresses())
	defer service.Close()
	for _, s := range All() {
		guards := s.Guards
		if !rigtest.IsNightly() && os.Getenv("OVERSELL_SCENARIOS") == "" {
			guards = []Guard{guards[0], guards[len(guards)-1]}
		}
		for _, guard := range guards {
			t.Run(s.ID+" "+guard.ID, func(t *testing.T) {
				if s.ID == Tickets().ID {
					windowsSell(t, service, guard)
					return
				}
				for range runsOf(guard) {
					r, err := s.Run(t.Context(), service, guard)
					if err != nil {
						t.Fatal(err)
					}
					if !r.AsClaimed() {
						t.Errorf("safe %t, but: %s outcomes %v, broken: %q", r.Safe, r.Sentence.EN, r.Outcomes, r.Broken)
					}
					if testing.Verbose() {
						t.Log(r.Sentence.EN, r.Outcomes, r.Broken)
					}
				}
			})
		}
	}
	t.Run("bad tickets", func(t *testing.T) { badTickets(t, service.Replicas[0]) })
	t.Run("bad orders", func(t *testing.T) { badOrders(t, service.Replicas[0]) })
	kills := map[string]int{"written": 1} // the sold tickets by the step of the kill
	if rigtest.IsNightly() {
		kills["writing"] = 0
	}
	for step, sold := range kills {
		t.Run("killed at "+step, func(t *testing.T) { windowIsKilled(t, lab, service, step, sold) })
	}
}

// runsOf returns how often a guard runs: once, or more often under `make scenarios`.
func runsOf(guard Guard) int {
	switch {
	case os.Getenv("OVERSELL_SCENARIOS") == "":
		return 1
	case guard.Safe:
		return 50
	default:
		return 10
	}
}
