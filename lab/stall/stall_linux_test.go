package stall_test

import (
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"oversell/lab/stall"
)

// TestLongest stops this process for a while, as a busy machine does.
func TestLongest(t *testing.T) {
	const resume = `until grep -q '^State:.T' /proc/$PPID/status; do sleep 0.01; done; sleep 0.3; kill -CONT $PPID`
	child := exec.CommandContext(t.Context(), "sh", "-c", resume)
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	longest := stall.Longest(t.Context())
	if err := syscall.Kill(os.Getpid(), syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	if err := child.Wait(); err != nil {
		t.Error(err)
	}
	if got := longest(); got < 250*time.Millisecond {
		t.Errorf("stopped for 300 ms, measured %v", got)
	}
}
