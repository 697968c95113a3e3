package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"oversell/lab/quiet"
)

// aloneCommand, for make record, fails if other processes used more than a tenth of the CPU.
func aloneCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "alone -- COMMAND [ARGUMENT...]",
		Short: "Run a command, and fail if other processes took more than a tenth of the cores",
		Args:  cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			before, failed := quiet.Now()
			if err := runChild(cmd, args); err != nil {
				return err
			}
			after, err := quiet.Now()
			if err = errors.Join(failed, err); err != nil {
				cmd.PrintErrln("alone: cannot measure the load of other processes:", err)
				return nil
			}
			var own syscall.Rusage // used by the command and its descendants
			if err := syscall.Getrusage(syscall.RUSAGE_CHILDREN, &own); err != nil {
				return fmt.Errorf("alone: read the CPU time of the command: %w", err)
			}
			others := quiet.Others(before, after, time.Duration(own.Utime.Nano()+own.Stime.Nano()))
			if err := quiet.Check(others); err != nil {
				return fmt.Errorf("alone: %w", err)
			}
			cmd.PrintErrf("alone: other processes took %.0f %% of the cores\n", 100*others)
			return nil
		},
		Hidden: true,
	}
}

// runChild does not kill the command at Ctrl-C: the terminal sends the signal to the command, too.
func runChild(cmd *cobra.Command, args []string) error {
	child := exec.CommandContext(context.WithoutCancel(cmd.Context()), args[0], args[1:]...) //nolint:gosec // the user's own
	// Not over a pipe, because it may be a terminal.
	child.Stdin, child.Stdout, child.Stderr = os.Stdin, os.Stdout, os.Stderr
	err := child.Run()
	var failed *exec.ExitError
	switch {
	case errors.As(err, &failed):
		return &exit{max(1, failed.ExitCode()), nil} // the command has already printed the reason
	case err != nil:
		return fmt.Errorf("alone: %w", err)
	}
	return nil
}
