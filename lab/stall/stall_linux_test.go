package stall_test

import (
	"context"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"testing"
	"time"

	"oversell/lab/stall"
)

// TestSlowest lets more processes run than there are processors.
func TestSlowest(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for range 4 * runtime.NumCPU() {
		if err := exec.CommandContext(ctx, "sh", "-c", "while :; do :; done").Start(); err != nil {
			t.Fatal(err)
		}
	}
	slowest := stall.Slowest(ctx)
	time.AfterFunc(time.Second, cancel)
	<-ctx.Done()
	if got := slowest(); got < 40*time.Millisecond {
		t.Errorf("with 4 busy processes for each processor, 20 ms of work take %v", got)
	}
}

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
