package cli

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"oversell/lab/quiet"
)

// aloneCommand runs a measurement whose figures are written down. Only make record needs
// it, so it is hidden.
func aloneCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "alone -- COMMAND [ARGUMENT...]",
		Short: "run a command, and fail if other processes took more than a tenth of the cores meanwhile",
		Args:  cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			before, failed := quiet.Now()
			if err := runThrough(cmd, args); err != nil {
				return err
			}
			after, err := quiet.Now()
			if err = errors.Join(failed, err); err != nil {
				cmd.PrintErrln("alone: cannot tell whether the machine was quiet:", err)
				return nil
			}
			own, err := childrenTime()
			if err != nil {
				return err
			}
			others := quiet.Others(before, after, own)
			if err := quiet.Check(others); err != nil {
				return fmt.Errorf("alone: %w", err)
			}
			cmd.PrintErrf("alone: other processes took %.0f %% of the cores\n", 100*others)
			return nil
		},
		Hidden: true,
	}
}

// runThrough runs a command to its end. Ctrl-C reaches it from the terminal.
func runThrough(cmd *cobra.Command, args []string) error {
	child := exec.CommandContext(context.WithoutCancel(cmd.Context()), args[0], args[1:]...) //nolint:gosec // the user's own
	child.Stdin, child.Stdout, child.Stderr = cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr()
	err := child.Run()
	var ended *exec.ExitError
	switch {
	case errors.As(err, &ended):
		return &exit{max(1, ended.ExitCode()), nil} // it said why itself
	case err != nil:
		return fmt.Errorf("alone: %w", err)
	}
	return nil
}

// childrenTime returns the CPU time of all processes that this one, or one of its
// descendants, started and waited for.
func childrenTime() (time.Duration, error) {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_CHILDREN, &used); err != nil {
		return 0, fmt.Errorf("alone: CPU time of the children: %w", err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano()), nil
}
