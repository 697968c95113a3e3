package pin

import (
	"os"
	"runtime"
	"strconv"
	"testing"

	"github.com/prometheus/procfs"
)

// TestProcess pins this process to one core, and then to all again.
func TestProcess(t *testing.T) {
	all, err := allowed()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = process(all) })
	if err := process(all[:1]); err != nil {
		t.Fatal(err)
	}
	threads, err := procfs.AllThreads(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	for _, thread := range threads {
		status, err := thread.NewStatus()
		if want := strconv.Itoa(all[0]); err == nil && (len(status.CpusAllowedList) != 1 || strconv.FormatUint(status.CpusAllowedList[0], 10) != want) {
			t.Errorf("a thread runs on the cores %v, want %s", status.CpusAllowedList, want)
		}
	}
}

// TestApart checks that nothing is pinned on two cores or fewer.
func TestApart(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(min(2, runtime.NumCPU())))
	if load, servers, err := Apart(); load != 0 || servers != nil || err != nil {
		t.Errorf("load %d, servers %v, %v", load, servers, err)
	}
}
