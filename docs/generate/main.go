// Command generate writes the generated parts of the documents, and the recordings from which it writes them. Only
// developers need it: make docs and other targets run it in the root folder of the checkout.
package main

import (
	"context"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"

	"oversell/lab/rig"
)

// program is what make build has built. It runs in the labs of this program, and judges the libraries.
const program = "bin/oversell"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := rootCommand().ExecuteContext(ctx) // it has printed the error
	stop()
	if err != nil {
		os.Exit(1)
	}
}

// task is what a command does with its arguments.
type task func(ctx context.Context, args []string) error

// record is the task of adding what a file or a folder has to the recordings. Then it writes the parts again.
func record(add func(ctx context.Context, from string) error) task {
	return func(ctx context.Context, args []string) error {
		if err := add(ctx, args[0]); err != nil {
			return err
		}
		return writeParts()
	}
}

func rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:          "generate",
		Short:        "Write the generated parts of the documents in this folder again",
		Args:         cobra.NoArgs,
		SilenceUsage: true,
		RunE:         func(*cobra.Command, []string) error { return writeParts() },
	}
	one := cobra.ExactArgs(1)
	for _, c := range []struct {
		use, short string
		args       cobra.PositionalArgs
		run        task
	}{
		{"claims FILE", "Add the results of FILE, from break --json, to " + recordedMatrix, one, record(recordClaims)},
		{"runs FOLDER", "Copy one run for each verdict from FOLDER, of break --keep, to " + recordedRuns, one, record(recordRuns)},
		{"searches FILE", "Add the results of FILE, from explore --all --json, to " + recordedSearches, one, record(recordSearches)},
		{"databases FOLDER", "Write the results in FOLDER, of make databases, to " + recordedDatabases, one, record(recordDatabases)},
		{"incidents [ID...]", "Repeat the bug reports of " + incidentList + ", and compare with what they say", nil, repeatIncidents},
		{"steps [strategy...]", "Record every order of the steps of two clients in " + recordedSteps, nil, recordSteps},
		{"course [lesson...]", "Run the commands of the lessons in docs/course, and write their results into the lessons", nil, recordCourse},
		{"pages FOLDER", "Write a page for each library, with its timelines, to FOLDER", one, writeLibraryPages},
		{
			"alone -- COMMAND [ARGUMENT...]", "Run a command, and fail if other processes took more than a tenth of the cores",
			cobra.MinimumNArgs(1), runAlone,
		},
		{"reap FOLDER", "Clean up after a lab, which starts this command", one, func(_ context.Context, args []string) error {
			return rig.Reap(args[0], os.Stdin, os.Stdout)
		}},
	} {
		root.AddCommand(&cobra.Command{
			Use: c.use, Short: c.short, Args: c.args,
			RunE: func(cmd *cobra.Command, args []string) error { return c.run(cmd.Context(), args) },
		})
	}
	root.AddCommand(librariesCommand())
	return root
}

// startLab starts a lab on free ports. change adapts its settings.
func startLab(ctx context.Context, change func(*rig.Config)) (*rig.Rig, error) {
	binary, err := filepath.Abs(program)
	if err != nil {
		return nil, err
	}
	cfg := rig.OwnLab(binary, os.Stderr)
	change(&cfg)
	return rig.Start(ctx, cfg)
}
