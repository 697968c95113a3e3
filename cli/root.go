// Package cli has the commands of the program. The commands connect the other packages.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/redis/go-redis/v9/logging"
	"github.com/spf13/cobra"

	"oversell/lab/load"
	"oversell/lab/rig"
	"oversell/lab/suggest"
	"oversell/trial/explore"
)

// version is the program's version, which the linker sets.
var version = "dev"

// exit is an error with the program's exit status. If err is nil, the program prints no message.
type exit struct {
	status int
	err    error
}

func (e *exit) Error() string {
	if e.err == nil {
		return ""
	}
	return e.err.Error()
}

func (e *exit) Unwrap() error { return e.err }

// failure is the error of a command. Its text begins with the command's name.
type failure struct {
	command string
	err     error
}

func (f *failure) Error() string { return f.command + ": " + strings.TrimSpace(f.err.Error()) }

func (f *failure) Unwrap() error { return f.err }

// named says in which command err happened: that of the program, such as run for a scenario. An error without a
// message stays as it is, and that of a package which has the command's name.
func named(cmd *cobra.Command, err error) error {
	for cmd.HasParent() && cmd.Parent().HasParent() {
		cmd = cmd.Parent()
	}
	if err == nil || !cmd.HasParent() || strings.TrimSpace(err.Error()) == "" || strings.HasPrefix(err.Error(), cmd.Name()+": ") {
		return err
	}
	return &failure{cmd.Name(), err}
}

// concluded returns err with the exit status of what experiments have found: 1 for a contradiction, else 2 if they are
// inconclusive and nothing failed.
func concluded(contradicted, inconclusive bool, err error) error {
	switch {
	case contradicted:
		return &exit{1, err}
	case inconclusive && err == nil:
		return &exit{2, nil}
	}
	return err
}

// ended returns err with the exit status 130 if a signal has ended ctx, unless a contradiction was found before.
func ended(ctx context.Context, err error) error {
	if ctx.Err() == nil || err == nil {
		return err
	}
	status := 130
	if found := (*exit)(nil); errors.As(err, &found) && found.status == 1 {
		status = 1
	}
	if text := "stopped"; errors.Is(err, context.Canceled) {
		if status == 1 {
			text = strings.ReplaceAll(err.Error(), context.Canceled.Error(), text)
		}
		err = errors.New(text)
	}
	return &exit{status, err}
}

// Main returns the exit status: 0 success, 1 failure or contradiction, 2 inconclusive or bad command line, 130 Ctrl-C. The first
// Ctrl-C asks the command to end. The second kills the program, and a reaper process cleans up.
// program is the name by which the user started it, for the hints. foreign are locks that are not
// strategies, which the command explore knows, too.
func Main(program string, args []string, foreign ...explore.Lock) int {
	ctx, stop := signal.NotifyContext(context.Background(), endSignals()...)
	defer stop()
	context.AfterFunc(ctx, stop)
	load.RaiseOpenFiles()
	logging.Disable() // go-redis prints the errors that it also returns
	root := rootCommand(program, foreign...)
	root.SetArgs(args)
	out := &output{file: os.Stdout}
	root.SetOut(out)
	return printError(os.Stderr, program, out.or(root.ExecuteContext(ctx)))
}

func printError(w io.Writer, program string, err error) (status int) {
	if err == nil {
		return 0
	}
	status = 1
	if e := (*exit)(nil); errors.As(err, &e) {
		status = e.status
	}
	// err may join an exit without a message and errors with messages, so look at the joined text.
	message := strings.TrimSpace(err.Error())
	if unknown := (*suggest.Unknown)(nil); errors.As(err, &unknown) && unknown.Kind == "strategy" && strings.HasSuffix(message, "?") {
		message += " List them: " + program + " strategies"
	}
	if message != "" {
		_, _ = fmt.Fprintln(w, "oversell:", message)
	}
	if errors.Is(err, rig.ErrMissing) {
		_, _ = fmt.Fprintln(w, asTyped(noServers, program))
	}
	return status
}

// endSignals omits SIGHUP under nohup: the command must continue when the terminal is closed.
func endSignals() []os.Signal {
	ends := []os.Signal{syscall.SIGINT, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		ends = append(ends, syscall.SIGHUP)
	}
	return ends
}

// noServers is for the Docker image, where the "make servers" of the printed error cannot run.
const noServers = `This command starts its own servers, and the Docker image has none. Under Docker, use the page:
it runs and steps through strategies, and runs the scenarios. To break locks, run "make lab" or
"oversell break" on a machine, without Docker.`

func rootCommand(program string, foreign ...explore.Lock) *cobra.Command {
	root := &cobra.Command{
		Use:           "oversell",
		Short:         "A laboratory for distributed locks",
		Long:          "Three replicas sell from one MySQL row. A parameter chooses the lock that protects it.\nRun the same load with each lock, and see which of them oversell.",
		Version:       version,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          knownCommand,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: program},

		DisableFlagsInUseLine: true,
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return named(cmd, &exit{2, flagError(cmd, err)}) })
	root.SetHelpFunc(writeHelp)
	root.SetUsageFunc(writeUsage)
	root.SetHelpCommand(helpCommand())
	root.AddCommand(labCommand(), dashCommand(), runCommand(), compareCommand(), breakCommand(), chaosCommand(), stepCommand(), exploreCommand(foreign...), siteCommand(), exerciseCommand(), strategiesCommand(), serveCommand(), migrateCommand(), probeCommand(), reapCommand(), adapterCommand(), contractCommand(), judgeCommand(), gradeCommand(), workerCommand())
	root.AddCommand(clientCommands()...)
	root.AddCommand(settingsCommand())
	root.InitDefaultCompletionCmd()
	if completion, _, err := root.Find([]string{"completion"}); err == nil {
		completion.Args, completion.RunE = knownCommand, root.RunE
		for _, shell := range completion.Commands() {
			shell.Args = noArgs
		}
	}
	forUsers(root, program)
	return root
}
