package cli

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"oversell/trial/explore"
)

// Explore runs the command explore in a program of one's own, for locks that are not strategies: those of other libraries.
// It returns the exit status. See adapters/examples/schedules.
func Explore(args []string, all ...explore.Lock) int {
	return Main("oversell", append([]string{"explore"}, args...), all...)
}

// checkName finds the strategy, or the lock that the program has handed over.
func (f *exploreFlags) checkName() error {
	var names []string
	for _, l := range f.locks {
		if l.Card.ID == f.scope.Strategy {
			f.scope.Lock = &l
			return nil
		}
		names = append(names, l.Card.ID)
	}
	_, err := cardsOf([]string{f.scope.Strategy})
	if err != nil && len(names) > 0 {
		return fmt.Errorf("this program has no lock %q, only %s, and the strategies", f.scope.Strategy, strings.Join(names, ", "))
	}
	return err
}

// build compiles the program of --go, and runs it with the other arguments.
func (f *exploreFlags) build(cmd *cobra.Command, args []string) (err error) {
	if f.every {
		return usage("--all searches our strategies: it cannot be used with --go")
	}
	folder, err := os.MkdirTemp("", "oversell-explore-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	program := filepath.Join(folder, "explore")
	compile := exec.CommandContext(cmd.Context(), "go", "build", "-C", f.program, "-tags", "nomsgpack", "-o", program, ".") //nolint:gosec // the user's
	compile.Stderr = cmd.ErrOrStderr()
	if err := compile.Run(); err != nil {
		return fmt.Errorf("--go %s: go build: %w", f.program, err)
	}
	cmd.Flags().Visit(func(flag *pflag.Flag) {
		if flag.Name != "go" {
			args = append(args, "--"+flag.Name+"="+flag.Value.String())
		}
	})
	run := exec.CommandContext(cmd.Context(), program, args...) //nolint:gosec // the user's
	run.Stdin, run.Stdout, run.Stderr = cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr()
	run.Cancel = func() error { return run.Process.Signal(os.Interrupt) } // it prints what it has found
	err = run.Run()
	if failed := (*exec.ExitError)(nil); errors.As(err, &failed) {
		return &exit{failed.ExitCode(), nil}
	}
	return err
}
