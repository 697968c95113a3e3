package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"oversell/api"
	"oversell/lab/experiment"
	"oversell/lab/matrix"
)

// library is an entry of the list of libraries on trial.
type library struct {
	ID       string // of its files in docs/libraries
	Command  string // of its adapter: a program and its arguments, separated by spaces
	Language string
}

func (l library) id() string { return l.ID }

const (
	libraryList    = "adapters/libraries.json"
	libraryFolder  = "docs/libraries"    // the verdicts
	libraryResults = "results/libraries" // all recordings, and a page for each library
)

// librariesCommand puts all libraries on trial, or those with the ids: make libraries.
func librariesCommand() *cobra.Command {
	seeds := 1
	cmd := &cobra.Command{
		Use:   "libraries [flags] [ID...]",
		Short: "Judge the libraries of " + libraryList + ", and keep the verdicts in " + libraryFolder,
		RunE: func(cmd *cobra.Command, ids []string) error {
			return judgeLibraries(cmd.Context(), program, ids, seeds)
		},
	}
	cmd.Flags().IntVar(&seeds, "seeds", seeds, "number of rounds; results of earlier rounds are kept")
	return cmd
}

func judgeLibraries(ctx context.Context, program string, ids []string, seeds int) error {
	chosen, err := choose[library](libraryList, "library", ids)
	if err != nil {
		return err
	}
	for _, folder := range []string{libraryFolder, libraryResults} {
		if err := os.MkdirAll(folder, 0o755); err != nil { //nolint:gosec // documents, which everybody may read
			return err
		}
	}
	for _, l := range chosen {
		if err := l.judge(ctx, program, seeds); err != nil {
			return fmt.Errorf("%s: %w", l.ID, err)
		}
	}
	return nil
}

// judge runs oversell judge on the library. Its status 1 is no reason to stop: it is a verdict, or an
// experiment failed, and the earlier verdicts stay.
func (l library) judge(ctx context.Context, program string, seeds int) error {
	before := l.written()
	_, _ = fmt.Printf("\n== %s: %s\n", l.ID, l.Command)
	results := filepath.Join(libraryResults, l.ID)
	args := []string{
		"judge", "-q", "--seeds", strconv.Itoa(seeds), "--keep", results,
		"--json", l.file(".json"), "--html", results + ".html", "--",
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
	if !l.written().After(before) {
		_, _ = fmt.Fprintln(os.Stderr, l.ID, "has no new verdicts")
		return nil
	}
	return l.keepRecordings(results)
}

// written returns the time at which the verdicts were written, and the zero time without verdicts.
func (l library) written() time.Time {
	info, err := os.Stat(l.file(".json"))
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}

func (l library) file(suffix string) string { return filepath.Join(libraryFolder, l.ID+suffix) }

// keepRecordings keeps one run of each hazard that broke the lock, for the documents.
func (l library) keepRecordings(results string) error {
	store, err := experiment.OpenStore(results)
	if err != nil {
		return err
	}
	kept := []experiment.RecordedRun{}
	for _, r := range matrix.Summarise(store.Results()).Typical(store.Results()) {
		if !r.Verdict.Failed() || r.Verdict == api.Wasteful {
			continue
		}
		if r, err = store.WithRecording(r); err != nil {
			return err
		}
		kept = append(kept, experiment.RecordedRun{Result: r, Recording: r.Recording})
	}
	return writeRecorded(l.file(".json.gz"), kept)
}
