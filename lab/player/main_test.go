package player

import (
	"testing"

	"oversell/lab/rig"
	"oversell/lab/rig/rigtest"
)

var servers *rig.Rig

func TestMain(m *testing.M) {
	rigtest.MainWith(m, Config("", "token"), func(r *rig.Rig) { servers = r })
}

func open(t *testing.T) *Testbed {
	t.Helper()
	bed, err := Open(t.Context(), servers)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(bed.Close)
	return bed
}
