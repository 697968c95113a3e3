package rig_test

import (
	"os"
	"slices"
	"testing"

	"github.com/prometheus/procfs"

	"oversell/lab/rig"
	"oversell/lab/rig/rigtest"
)

// TestCores checks that the servers run on the cores of the configuration. Of this process, the one thread that starts
// them does too. It may be any thread, also the main one, whose cores Linux shows as those of the process.
func TestCores(t *testing.T) {
	all := coresOf(t, os.Getpid())
	first := all[0][:1]
	r := rigtest.Start(t, rig.Config{Redis: 1, Cores: []int{int(first[0])}}) //nolint:gosec // the number of a core
	for _, cores := range coresOf(t, r.Servers()[0].PID()) {
		if !slices.Equal(cores, first) {
			t.Errorf("a thread of redis-1 runs on the cores %v, want %v", cores, first)
		}
	}
	if len(all[0]) == 1 {
		return
	}
	for _, want := range []int{1, 0} { // while the lab runs, and when it is closed
		pinned := slices.DeleteFunc(coresOf(t, os.Getpid()), func(cores []uint64) bool { return !slices.Equal(cores, first) })
		if len(pinned) != want {
			t.Errorf("%d threads of this process run on the core %v only, want %d", len(pinned), first, want)
		}
		must(t, r.Close())
	}
}

// coresOf returns, for each thread of a process, the cores on which it may run.
func coresOf(t *testing.T, pid int) (cores [][]uint64) {
	t.Helper()
	threads, err := procfs.AllThreads(pid)
	must(t, err)
	for _, thread := range threads {
		if status, err := thread.NewStatus(); err == nil { // an error: the thread has ended
			cores = append(cores, status.CpusAllowedList)
		}
	}
	return cores
}
