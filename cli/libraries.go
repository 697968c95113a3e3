package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"oversell/api"
	"oversell/lab/experiment"
	"oversell/lab/matrix"
	"oversell/lab/suggest"
)

// library is an entry of the list of libraries on trial.
type library struct {
	ID       string // of its files and of its section in docs/libraries.md
	Command  string // of its adapter: a program and its arguments, separated by spaces
	Language string
}

const (
	libraryList    = "adapters/libraries.json"
	libraryFolder  = "docs/libraries"    // the verdicts
	libraryResults = "results/libraries" // all recordings, and a page for each library
)

// librariesCommand puts all libraries on trial. Only developers need this command: make libraries.
func librariesCommand() *cobra.Command {
	seeds, pages := 1, ""
	cmd := &cobra.Command{
		Use:    "libraries [flags] [ID...]",
		Short:  "Judge the libraries of " + libraryList + ", and keep the verdicts in " + libraryFolder,
		Hidden: true,
		RunE: func(cmd *cobra.Command, ids []string) error {
			if pages != "" {
				return writeLibraryPages(pages)
			}
			chosen, err := chooseLibraries(ids)
			if err != nil {
				return usage("libraries: %w", err)
			}
			for _, folder := range []string{libraryFolder, libraryResults} {
				if err := os.MkdirAll(folder, 0o755); err != nil { //nolint:gosec // documents, which everybody may read
					return fmt.Errorf("libraries: %w", err)
				}
			}
			for _, l := range chosen {
				if err := l.judge(cmd, seeds); err != nil {
					return err
				}
			}
			return nil
		},
	}
	cmd.Flags().IntVar(&seeds, "seeds", seeds, "number of rounds; results of earlier rounds are kept")
	cmd.Flags().StringVar(&pages, "pages", "", "judge nothing, but write pages with the timelines of the recorded runs to `FOLDER`")
	return cmd
}

// chooseLibraries returns the entries of the list with these ids, or all without ids.
func chooseLibraries(ids []string) (chosen []library, err error) {
	list, err := os.ReadFile(libraryList)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(list, &chosen); err != nil || len(ids) == 0 {
		return chosen, err
	}
	known := make([]string, len(chosen))
	for i, l := range chosen {
		known[i] = l.ID
	}
	for _, id := range ids {
		if !slices.Contains(known, id) {
			return nil, &suggest.Unknown{Kind: "library", Name: id, Known: known}
		}
	}
	return slices.DeleteFunc(chosen, func(l library) bool { return !slices.Contains(ids, l.ID) }), nil
}

// judge runs oversell judge on the library. Its status 1 is no reason to stop: it is a verdict, or an
// experiment failed, and the earlier verdicts stay.
func (l library) judge(cmd *cobra.Command, seeds int) error {
	before := l.written()
	cmd.Printf("\n== %s: %s\n", l.ID, l.Command)
	results := filepath.Join(libraryResults, l.ID)
	args := []string{
		os.Args[0], "judge", // the published command must not name a folder of one machine
		"-q", "--seeds", strconv.Itoa(seeds), "--keep", results,
		"--json", l.file(".json"), "--html", results + ".html", "--",
	}
	var failed *exit
	if err := runChild(cmd, append(args, strings.Fields(l.Command)...)); err != nil && (!errors.As(err, &failed) || failed.status != 1) {
		return err
	}
	if err := cmd.Context().Err(); err != nil {
		return &exit{130, err}
	}
	if !l.written().After(before) {
		cmd.PrintErrf("libraries: %s has no new verdicts\n", l.ID)
		return nil
	}
	if err := l.keepRecordings(results); err != nil {
		return fmt.Errorf("libraries: %s: %w", l.ID, err)
	}
	return nil
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
