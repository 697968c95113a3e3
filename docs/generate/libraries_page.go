package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"oversell/api"
	"oversell/lab/experiment"
	"oversell/trial"
	"oversell/view/matrix"
	"oversell/view/report"
)

// judgedLibrary has the verdicts on a library, with a run for each hazard that broke its lock.
type judgedLibrary struct {
	trial.Library
	trial.Report
}

// judgedLibraries reads what make libraries has stored, sorted by servers, language and id.
func judgedLibraries() (all []judgedLibrary, err error) {
	files, err := filepath.Glob(filepath.Join(trial.LibraryVerdicts, "*.json"))
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		j := judgedLibrary{Library: trial.Library{ID: strings.TrimSuffix(filepath.Base(file), ".json")}}
		if j.Report, err = readJSON[trial.Report](file); err != nil {
			return nil, err
		}
		if j.Runs, err = readRecorded(j.File(".json.gz"), experiment.RecordedRuns); err != nil {
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
	row matrix.Row
}

func columns(all []judgedLibrary) (columns []column) {
	for _, j := range all {
		for _, row := range j.Rows {
			columns = append(columns, column{j, row})
		}
		if len(j.Rows) == 0 {
			columns = append(columns, column{judgedLibrary: j})
		}
	}
	return columns
}

// writeLibraries prints a list of the libraries and a table of their verdicts, for each kind of server.
func writeLibraries(w io.Writer) error {
	all, err := judgedLibraries()
	if err != nil {
		return err
	}
	out := bufio.NewWriter(w)
	for rest := all; len(rest) > 0; {
		others := slices.IndexFunc(rest, func(j judgedLibrary) bool { return j.servers() != rest[0].servers() })
		if others < 0 {
			others = len(rest)
		}
		writeVerdicts(out, columns(rest[:others]))
		rest = rest[others:]
	}
	for _, j := range all {
		_, _ = fmt.Fprintf(out, "[%s]: libraries/%s.md\n", j.ID, j.ID)
	}
	return out.Flush()
}

// writeVerdicts prints the libraries on the same servers, and their verdicts.
func writeVerdicts(out io.Writer, columns []column) {
	_, _ = fmt.Fprintf(out, "### %s\n\n| | id | library | language | contract | seeds | date |\n|--:|---|---|---|---|--:|---|\n", columns[0].servers())
	var m matrix.Matrix // for the order of the hazards
	for i, c := range columns {
		h, name := c.Hello, fmt.Sprintf("[%s]", c.ID)
		if c.row.Fenced {
			name += " with the fence"
		}
		_, _ = fmt.Fprintf(out, "|%d| %s | %s | %s |%d/%d|%d|%s|\n", i+1, name, strings.TrimSpace(h.Library+" "+h.Version),
			h.Language, c.Totals.Checks-c.Totals.ChecksFailed-c.Totals.ChecksOpen, c.Totals.Checks, c.seeds(), c.Date)
		m.Record(c.Matrix)
	}
	_, _ = fmt.Fprint(out, "\n| |")
	for i := range columns {
		_, _ = fmt.Fprintf(out, "%d|", i+1)
	}
	_, _ = fmt.Fprintf(out, "\n|---|%s\n", strings.Repeat(":-:|", len(columns)))
	for _, hazard := range m.Hazards {
		_, _ = fmt.Fprintf(out, "| %s |", hazard)
		for _, c := range columns {
			_, _ = fmt.Fprintf(out, "%s|", letter(c.row.Summaries[hazard].Verdict))
		}
		_, _ = fmt.Fprintln(out)
	}
	_, _ = fmt.Fprintln(out)
}

// letter stands for a verdict in the table. It tells apart what matrix.Sign does not.
func letter(v api.Verdict) string {
	switch v {
	case "":
		return " "
	case api.Stalled:
		return "s"
	case api.Aborted:
		return "a"
	case api.Wasteful:
		return "w"
	}
	return v.Sign()
}

// writeLibraryDocuments writes a document for each library, beside its verdicts.
func writeLibraryDocuments() error {
	all, err := judgedLibraries()
	for _, j := range all {
		err = errors.Join(err, report.WriteFile(j.File(".md"), func(w io.Writer) error {
			_, err := fmt.Fprintf(w, "# %s\n\n%s, used as [its documentation](%s) shows. %s; %s; %s.\n\n"+
				"[All libraries](../libraries.md) says how to read this. `make docs` writes this file.\n\n",
				j.ID, strings.TrimSpace(j.Hello.Library+" "+j.Hello.Version), j.Hello.Document, j.Date, j.Machine, j.Versions)
			j.WriteFindings(w)
			return err
		}))
	}
	return err
}

// seeds returns the smallest number of runs of a hazard.
func (j judgedLibrary) seeds() (least int) {
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
