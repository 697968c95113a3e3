package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"

	"oversell/lab/load"
)

// maxOthers is the share of the cores that other processes may take during a measurement. On a busy machine, two
// runs of one lock differ more than the runs of two locks, so these figures must not be recorded.
const maxOthers = 0.10

// runAlone runs a command, for make record. It returns an error if other processes used more than maxOthers of the cores
// meanwhile: then the figures are not reliable.
func runAlone(ctx context.Context, args []string) error {
	before, failed := load.ReadProcessor()
	// Not ended by the context: the terminal sends Ctrl-C to the command, too.
	child := exec.CommandContext(context.WithoutCancel(ctx), args[0], args[1:]...) //nolint:gosec // the user's own
	child.Stdin, child.Stdout, child.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := child.Run(); err != nil {
		return err
	}
	after, err := load.ReadProcessor()
	if err = errors.Join(failed, err); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "alone: cannot measure the load of other processes:", err)
		return nil
	}
	var own syscall.Rusage // used by the command and its descendants
	if err := syscall.Getrusage(syscall.RUSAGE_CHILDREN, &own); err != nil {
		return fmt.Errorf("read the CPU time of the command: %w", err)
	}
	others := after.Others(before, time.Duration(own.Utime.Nano()+own.Stime.Nano()))
	if others > maxOthers {
		return fmt.Errorf("other processes took %.0f %% of the %d cores during the measurement, more than %.0f %%: "+
			"its figures must not be recorded; end the other programs and start again", 100*others, runtime.NumCPU(), 100*maxOthers)
	}
	_, _ = fmt.Fprintf(os.Stderr, "alone: other processes took %.0f %% of the cores\n", 100*others)
	return nil
}
