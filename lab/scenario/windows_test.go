package scenario

import (
	"os"
	"testing"

	"oversell/lab/rig"
	"oversell/lab/rig/rigtest"
)

func TestMain(m *testing.M) { rigtest.Main(m) }

// TestWindows runs the scenario Tickets, which needs five replicas. The tests of package cli run
// the other scenarios, on three replicas.
func TestWindows(t *testing.T) {
	cfg := rig.FullLab("", "test-token")
	cfg.Ports, cfg.Replicas, cfg.Nginx = rig.Ports{}, windows, false
	lab := rigtest.Start(t, rigtest.Guest(cfg))
	service := Connect(lab.Addresses())
	defer service.Close()
	for _, guard := range Tickets().Guards {
		t.Run(guard.ID, func(t *testing.T) { windowsSell(t, service, guard) })
	}
	t.Run("bad tickets", func(t *testing.T) { badTickets(t, service.Replicas[0]) })
	t.Run("bad orders", func(t *testing.T) { badOrders(t, service.Replicas[0]) })
	for step, sold := range map[string]int{"writing": 0, "written": 1} {
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
