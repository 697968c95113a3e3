// Package cli is the command line: one command, one file, wiring only.
package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"oversell/lab/rig"
)

// version is set by the linker.
var version = "dev"

// exit is an error with an exit status of its own; a nil Err is silent.
type exit struct {
	status int
	err    error
}

func (e *exit) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit status %d", e.status)
	}
	return e.err.Error()
}

func (e *exit) Unwrap() error { return e.err }

// Main runs one command and returns the exit status: 0 done, 1 failed, 2 for
// a command line that can't be understood. The first Ctrl-C asks the command to
// end, the second ends it at once; the reaper then removes what it started.
func Main(args []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), endSignals()...)
	defer stop()
	context.AfterFunc(ctx, stop)
	root := rootCommand()
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	var e *exit
	if !errors.As(err, &e) {
		e = &exit{1, err}
	}
	if e.err != nil {
		fmt.Fprintln(os.Stderr, "oversell:", err)
	}
	if errors.Is(err, rig.ErrMissing) {
		fmt.Fprintln(os.Stderr, noServers)
	}
	return e.status
}

// endSignals returns the signals that ask a command to end. Under nohup, the end of the
// terminal is none of them.
func endSignals() []os.Signal {
	ends := []os.Signal{syscall.SIGINT, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		ends = append(ends, syscall.SIGHUP)
	}
	return ends
}

// noServers follows an error that names servers, which "make servers" cannot install in a
// container: its image has no shell.
const noServers = `This command starts servers of its own. The Docker image has none. Under Docker, use the
page: it runs and steps through strategies, and runs the scenarios. To break locks, run
"make lab" or "oversell break" on a machine, without Docker.`

func rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:           "oversell",
		Short:         "A laboratory for distributed locks",
		Long:          "Three replicas sell stock from one MySQL row. A parameter says how they guard it.\nRun the same load against every guard, and see which ones oversell.",
		Version:       version,
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return &exit{2, err} })
	root.CompletionOptions.HiddenDefaultCmd = true
	root.AddCommand(labCommand(), dashCommand(), runCommand(), breakCommand(), stepCommand(), strategiesCommand(), serveCommand(), migrateCommand(), probeCommand(), reapCommand(), aloneCommand(), docsCommand())
	return root
}
