package rig_test

import (
	"testing"

	"github.com/prometheus/procfs"

	"oversell/lab/rig"
	"oversell/lab/rig/rigtest"
)

// TestCores checks that the servers run on the cores of the configuration, and this process on all of its own.
func TestCores(t *testing.T) {
	all := coresOf(t, 0)
	r := rigtest.Start(t, rig.Config{Redis: 1, Cores: []int{int(all[0])}}) //nolint:gosec // the number of a core
	if got := coresOf(t, r.Servers()[0].PID()); len(got) != 1 || got[0] != all[0] {
		t.Errorf("redis-1 runs on the cores %v, want %d", got, all[0])
	}
	if got := coresOf(t, 0); len(got) != len(all) {
		t.Errorf("this process runs on the cores %v, before on %v", got, all)
	}
}

// coresOf reads the cores on which a process may run. 0 is this process.
func coresOf(t *testing.T, pid int) []uint64 {
	t.Helper()
	proc, err := procfs.Self()
	if pid != 0 {
		proc, err = procfs.NewProc(pid)
	}
	must(t, err)
	status, err := proc.NewStatus()
	must(t, err)
	return status.CpusAllowedList
}
