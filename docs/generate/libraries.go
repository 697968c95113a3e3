package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
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
	"oversell/view/matrix"
	"oversell/view/report"
)

const (
	libraryList     = "adapters/libraries.json"
	libraryVerdicts = "docs/libraries"
	libraryResults  = "results/libraries" // all recordings, and a page for each library
)

// library is an entry of the list of libraries on trial.
type library struct {
	ID      string // of its files and of its section in docs/libraries.md
	Command string // of its adapter: a program and its arguments, separated by spaces
}

// file returns the path of a file with verdicts on the library: .json, or .json.gz for recorded runs.
func (l library) file(suffix string) string { return filepath.Join(libraryVerdicts, l.ID+suffix) }

// librariesCommand puts all libraries on trial, or those with the ids: make libraries.
func librariesCommand() *cobra.Command {
	seeds := 1
	cmd := &cobra.Command{
		Use:   "libraries [flags] [ID...]",
		Short: "Judge the libraries of " + libraryList + ", and keep the verdicts in " + libraryVerdicts,
		RunE: func(cmd *cobra.Command, ids []string) error {
			return judgeLibraries(cmd.Context(), program, ids, seeds)
		},
	}
	cmd.Flags().IntVar(&seeds, "seeds", seeds, "number of rounds; results of earlier rounds are kept")
	return cmd
}

func judgeLibraries(ctx context.Context, program string, ids []string, seeds int) error {
	chosen, err := choose(libraryList, "library", ids, func(l library) string { return l.ID })
	if err != nil {
		return err
	}
	for _, folder := range []string{libraryVerdicts, libraryResults} {
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
func judgeLibrary(ctx context.Context, l library, program string, seeds int) error {
	before := written(l)
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
	return writeRecorded(l.file(".json.gz"), runs)
}

// written returns the time at which the verdicts were written, and the zero time without verdicts.
func written(l library) time.Time {
	info, err := os.Stat(l.file(".json"))
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}

// judgedLibrary has the verdicts on a library, with a run for each hazard that broke its lock.
type judgedLibrary struct {
	library
	trial.Report
}

// judgedLibraries reads what make libraries has stored, sorted by servers, language and id.
func judgedLibraries() (all []judgedLibrary, err error) {
	files, err := filepath.Glob(filepath.Join(libraryVerdicts, "*.json"))
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		j := judgedLibrary{library: library{ID: strings.TrimSuffix(filepath.Base(file), ".json")}}
		if j.Report, err = readJSON[trial.Report](file); err != nil {
			return nil, err
		}
		if j.Runs, err = readRecorded(j.file(".json.gz"), experiment.RecordedRuns); err != nil {
			return nil, err
		}
		all = append(all, j)
	}
	slices.SortFunc(all, func(a, b judgedLibrary) int {
		return cmp.Or(cmp.Compare(a.servers(), b.servers()), cmp.Compare(a.Hello.Language, b.Hello.Language), cmp.Compare(a.ID, b.ID))
	})
	return all, nil
}

func (j judgedLibrary) servers() string { return strings.Join(j.Hello.Backends, ", ") }

// column is a library in the table of verdicts, with or without its fencing token.
type column struct {
	judgedLibrary
	Number int
	Row    matrix.Row
}

// Name returns the library with its version.
func (c column) Name() string { return strings.TrimSpace(c.Hello.Library + " " + c.Hello.Version) }

// Passed returns the number of checks of the contract that passed.
func (c column) Passed() int { return c.Totals.Checks - c.Totals.ChecksFailed - c.Totals.ChecksOpen }

// Letter returns the letter of the verdict on a hazard. It tells apart what the signs do not.
func (c column) Letter(hazard api.Hazard) string {
	v := c.Row.Summaries[hazard].Verdict
	return cmp.Or(map[api.Verdict]string{"": " ", api.Stalled: "s", api.Aborted: "a", api.Wasteful: "w"}[v], v.Sign())
}

// group has the libraries on the same servers.
type group struct {
	Servers string
	Columns []column
	matrix.Matrix
}

// writeLibraries prints a list of the libraries and a table of their verdicts, for each kind of server.
func writeLibraries(w io.Writer) error {
	all, err := judgedLibraries()
	if err != nil {
		return err
	}
	var groups []group
	for _, j := range all {
		if len(groups) == 0 || groups[len(groups)-1].Servers != j.servers() {
			groups = append(groups, group{Servers: j.servers()})
		}
		g := &groups[len(groups)-1]
		g.Record(j.Matrix) // for the order of the hazards
		for i := range max(1, len(j.Rows)) {
			c := column{judgedLibrary: j, Number: len(g.Columns) + 1}
			if len(j.Rows) > 0 {
				c.Row = j.Rows[i]
			}
			g.Columns = append(g.Columns, c)
		}
	}
	return fill(w, "libraries.md.tmpl", struct {
		Groups    []group
		Libraries []judgedLibrary
	}{groups, all})
}

// writeLibraryDocuments writes a document for each library, beside its verdicts.
func writeLibraryDocuments() error {
	all, err := judgedLibraries()
	for _, j := range all {
		err = errors.Join(err, report.WriteFile(j.file(".md"), func(w io.Writer) error {
			_, err := fmt.Fprintf(w, "# %s\n\n%s, used as [its documentation](%s) shows. %s; %s; %s.\n\n"+
				"[All libraries](../libraries.md) says how to read this. `make docs` writes this file.\n\n",
				j.ID, strings.TrimSpace(j.Hello.Library+" "+j.Hello.Version), j.Hello.Document, j.Date, j.Machine, j.Versions)
			j.WriteFindings(w)
			return err
		}))
	}
	return err
}

// Seeds returns the smallest number of runs of a hazard.
func (j judgedLibrary) Seeds() (least int) {
	for _, row := range j.Rows {
		for _, s := range row.Summaries {
			if least == 0 || s.Runs < least {
				least = s.Runs
			}
		}
	}
	return least
}

// writeLibraryPages writes a page for each library, with the timelines of its recorded runs.
func writeLibraryPages(_ context.Context, args []string) error {
	folder := args[0]
	all, err := judgedLibraries()
	if err == nil {
		err = os.MkdirAll(folder, 0o755) //nolint:gosec // pages, which everybody may read
	}
	if err != nil {
		return err
	}
	for _, j := range all {
		err := report.WriteFile(filepath.Join(folder, j.ID+".html"), func(w io.Writer) error { return j.WritePage(w, "en") })
		if err != nil {
			return err
		}
	}
	return nil
}
