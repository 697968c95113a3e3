package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"oversell/api"
	"oversell/lab/experiment"
	"oversell/trial"
)

// libraryResults is the folder with all recordings, and a page for each library.
const libraryResults = "results/libraries"

// librariesCommand puts all libraries on trial, or those with the ids: make libraries.
func librariesCommand() *cobra.Command {
	seeds := 1
	cmd := &cobra.Command{
		Use:   "libraries [flags] [ID...]",
		Short: "Judge the libraries of " + trial.LibraryList + ", and keep the verdicts in " + trial.LibraryVerdicts,
		RunE: func(cmd *cobra.Command, ids []string) error {
			return judgeLibraries(cmd.Context(), program, ids, seeds)
		},
	}
	cmd.Flags().IntVar(&seeds, "seeds", seeds, "number of rounds; results of earlier rounds are kept")
	return cmd
}

func judgeLibraries(ctx context.Context, program string, ids []string, seeds int) error {
	chosen, err := trial.Libraries(ids)
	if err != nil {
		return err
	}
	for _, folder := range []string{trial.LibraryVerdicts, libraryResults} {
		if err := os.MkdirAll(folder, 0o755); err != nil { //nolint:gosec // documents, which everybody may read
			return err
		}
	}
	for _, l := range chosen {
		if err := judgeLibrary(ctx, l, program, seeds); err != nil {
			return fmt.Errorf("%s: %w", l.ID, err)
		}
	}
	return nil
}

// judgeLibrary runs oversell judge on the library. Its status 1 is no reason to stop: it is a verdict, or an
// experiment failed, and the earlier verdicts stay.
func judgeLibrary(ctx context.Context, l trial.Library, program string, seeds int) error {
	before := written(l)
	_, _ = fmt.Printf("\n== %s: %s\n", l.ID, l.Command)
	results := filepath.Join(libraryResults, l.ID)
	args := []string{
		"judge", "-q", "--seeds", strconv.Itoa(seeds), "--keep", results,
		"--json", l.File(".json"), "--html", results + ".html", "--",
	}
	// Not ended by ctx: the terminal sends Ctrl-C to the child, too, which then ends its lab.
	args = append(args, strings.Fields(l.Command)...)
	child := exec.CommandContext(context.WithoutCancel(ctx), program, args...) //nolint:gosec // of the list
	child.Stdin, child.Stdout, child.Stderr = os.Stdin, os.Stdout, os.Stderr
	var failed *exec.ExitError
	if err := child.Run(); err != nil && (!errors.As(err, &failed) || failed.ExitCode() != 1) {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if !written(l).After(before) {
		_, _ = fmt.Fprintln(os.Stderr, l.ID, "has no new verdicts")
		return nil
	}
	runs, err := typicalRuns(results)
	if err != nil {
		return err
	}
	// For the documents: one run of each hazard that broke the lock.
	runs = slices.DeleteFunc(runs, func(r experiment.Result) bool { return !r.Verdict.Failed() || r.Verdict == api.Wasteful })
	return writeRuns(l.File(".json.gz"), runs)
}

// written returns the time at which the verdicts were written, and the zero time without verdicts.
func written(l trial.Library) time.Time {
	info, err := os.Stat(l.File(".json"))
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}
