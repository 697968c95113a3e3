package scenario

import (
	"os"
	"testing"

	"oversell/lab/rig"
	"oversell/lab/rig/rigtest"
)

func TestMain(m *testing.M) { rigtest.Main(m) }

// TestWindows needs a lab with a replica for each window; all else runs on three, in cli.
func TestWindows(t *testing.T) {
	cfg := rig.FullLab("", "test-token")
	cfg.Ports, cfg.Replicas, cfg.Nginx = rig.Ports{}, windows, false
	class := rigtest.Start(t, cfg)
	shop := At(class.Addresses())
	defer shop.Close()
	for _, guard := range Tickets().Guards {
		t.Run(guard.ID, func(t *testing.T) { windowsSell(t, shop, guard) })
	}
	t.Run("bad tickets", func(t *testing.T) { badTickets(t, shop.Replicas[0]) })
	t.Run("bad goods", func(t *testing.T) { badGoods(t, shop.Replicas[0]) })
	for step, sold := range map[string]int{"writing": 0, "written": 1} {
		t.Run("killed at "+step, func(t *testing.T) { windowIsKilled(t, class, shop, step, sold) })
	}
}

// runsOf is how often a guard is tried: once, or as make scenarios wants it.
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
