package main

import (
	"bufio"
	"cmp"
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

// judgedLibrary has the verdicts on a library, and a run for each hazard that broke its lock.
type judgedLibrary struct {
	trial.Library
	trial.Report
	runs []experiment.Result
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
		compressed, err := os.ReadFile(j.File(".json.gz"))
		if err != nil {
			return nil, err
		}
		if j.runs, err = experiment.RecordedRuns(compressed); err != nil {
			return nil, err
		}
		for i := range j.Rows {
			j.Rows[i].Strategy = j.ID
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
			out := bufio.NewWriter(w)
			j.write(out)
			return out.Flush()
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

// write prints the document of the library.
func (j judgedLibrary) write(out io.Writer) {
	h := j.Hello
	_, _ = fmt.Fprintf(out, "# %s\n\n%s, used as [its documentation](%s) shows. %s; %s; %s.\n\n", j.ID,
		strings.TrimSpace(h.Library+" "+h.Version), h.Document, j.Date, j.Machine, j.Versions)
	_, _ = fmt.Fprint(out, "[All libraries](../libraries.md) says how to read this. `make docs` writes this file.\n\n")
	for _, o := range j.Contract {
		if found := cmp.Or(o.Failed, o.Inconclusive); found != "" {
			_, _ = fmt.Fprintf(out, "- contract, `%s`: expected: %s. Found: %s.\n",
				o.Check, o.Claimed, strings.TrimSuffix(oneLine(found), "."))
		}
	}
	var survived []string
	for _, row := range j.Rows {
		for _, hazard := range j.Hazards {
			s, ok := row.Summaries[hazard]
			name := "`" + hazard + "`"
			if row.Fenced {
				name += " with the fence"
			}
			switch {
			case s.Claim != experiment.Silent && s.Agrees:
				name += " (as the lock claims)"
			case s.Claim != experiment.Silent:
				name += " (the lock claims otherwise)"
			}
			switch {
			case ok && s.Failed+s.Inconclusive > 0:
				_, _ = fmt.Fprintf(out, "- %s %s: %s\n", s.Verdict.Sign(), name, j.sentence(row, hazard, s))
			case ok:
				survived = append(survived, name)
			}
		}
	}
	if len(survived) > 0 {
		_, _ = fmt.Fprintf(out, "- %s %s: %s in each run.\n", api.Safe.Sign(), strings.Join(survived, ", "), api.Safe)
	}
	if j.Totals.Hazards > 0 {
		_, _ = fmt.Fprintf(out, "\nTo repeat a hazard: `bin/oversell judge --hazard HAZARD -- %s`.\n", j.command())
	} else {
		_, _ = fmt.Fprintf(out, "\n%s Repeat it: `bin/oversell contract -- %s`.\n", j.Report, j.command())
	}
}

// command returns the command of the adapter.
func (j judgedLibrary) command() string {
	_, command, _ := strings.Cut(j.Report.Command, " -- ")
	return command
}

// sentence describes the verdict on a hazard, and has the command that repeats the recorded run.
func (j judgedLibrary) sentence(row matrix.Row, hazard string, s matrix.Summary) string {
	why, command := s.Why.EN, s.Command
	for _, r := range j.runs {
		if r.Hazard == hazard && r.Fenced == row.Fenced {
			why, command = matrix.Cause(r, "en"), r.Repeat()
		}
	}
	times := fmt.Sprintf("in %d of %d runs", cmp.Or(s.Failed, s.Inconclusive), s.Runs)
	if s.Failed > 0 && s.Inconclusive > 0 {
		times += fmt.Sprintf(", inconclusive in %d", s.Inconclusive)
	}
	return fmt.Sprintf("%s %s. %s `bin/%s`", s.Verdict, times, oneLine(why), command)
}

// writeLibraryPages writes a page for each library, with the timelines of its recorded runs.
func writeLibraryPages(folder string) error {
	all, err := judgedLibraries()
	if err == nil {
		err = os.MkdirAll(folder, 0o755) //nolint:gosec // pages, which everybody may read
	}
	if err != nil {
		return err
	}
	for _, j := range all {
		about := matrix.About{Date: j.Date, Machine: j.Machine, Versions: j.Versions, Command: j.Report.Command}
		err := report.WriteFile(filepath.Join(folder, j.ID+".html"), func(w io.Writer) error {
			return matrix.WritePage(w, matrix.Summarise(j.runs), j.runs, about, "en")
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func oneLine(text string) string { return strings.ReplaceAll(text, "\n", " ") }
