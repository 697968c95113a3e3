package cli

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"oversell/api"
	"oversell/lab/experiment"
	"oversell/lab/matrix"
	"oversell/lab/report"
)

// judgedLibrary has the verdicts on a library, and a run for each hazard that broke its lock.
type judgedLibrary struct {
	library
	judgedPage
	runs []experiment.Result
}

// judgedLibraries reads what make libraries has stored, sorted by language and id.
func judgedLibraries() (all []judgedLibrary, err error) {
	files, err := filepath.Glob(filepath.Join(libraryFolder, "*.json"))
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		j := judgedLibrary{library: library{ID: strings.TrimSuffix(filepath.Base(file), ".json")}}
		verdicts, err := os.ReadFile(file) //nolint:gosec // a file of this repository
		if err != nil {
			return nil, err
		}
		if err := json.Unmarshal(verdicts, &j.judgedPage); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		compressed, err := os.ReadFile(j.file(".json.gz"))
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
		return cmp.Or(cmp.Compare(a.Hello.Language, b.Hello.Language), cmp.Compare(a.ID, b.ID))
	})
	return all, nil
}

// writeLibraries prints a list of the libraries, the tables of all verdicts, and a section for each library.
func writeLibraries(w io.Writer) error {
	all, err := judgedLibraries()
	if err != nil {
		return err
	}
	out := bufio.NewWriter(w)
	_, _ = fmt.Fprint(out, "| | library | language | servers | contract | seeds |\n|---|---|---|---|---|--:|\n")
	var m matrix.Matrix
	var sections []string
	for _, j := range all {
		m.Record(j.Matrix)
		h := j.Hello
		sections = append(sections, fmt.Sprintf("[%s](#%s)", j.ID, j.ID))
		_, _ = fmt.Fprintf(out, "| `%s` | %s | %s | %s | %d of %d | %d |\n", j.ID, strings.TrimSpace(h.Library+" "+h.Version),
			h.Language, strings.Join(h.Backends, ", "), j.Totals.Checks-j.Totals.ChecksFailed, j.Totals.Checks, j.seeds())
	}
	_, _ = fmt.Fprintf(out, "\nThe sentences and commands: %s.\n", strings.Join(sections, ", "))
	if err := m.WriteTables(out); err != nil {
		return err
	}
	for _, j := range all {
		j.write(out)
	}
	return out.Flush()
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

// write prints the section of the library.
func (j judgedLibrary) write(out io.Writer) {
	h := j.Hello
	_, _ = fmt.Fprintf(out, "\n### %s\n\n%s, used as [its documentation](%s) shows. %s; %s; %s.\n\n", j.ID,
		strings.TrimSpace(h.Library+" "+h.Version), h.Document, j.Date, j.Machine, j.Versions)
	for _, o := range j.Contract {
		if o.Failed != "" {
			_, _ = fmt.Fprintf(out, "- contract, `%s`: expected: %s. Found: %s.\n", o.Check, o.Claimed, strings.TrimSuffix(oneLine(o.Failed), "."))
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
			case ok && s.Failed+s.Inconclusive > 0:
				_, _ = fmt.Fprintf(out, "- %s %s: %s\n", matrix.Sign(s.Verdict), name, j.sentence(row, hazard, s))
			case ok:
				survived = append(survived, name)
			}
		}
	}
	if len(survived) > 0 {
		_, _ = fmt.Fprintf(out, "- %s %s: %s in each run.\n", matrix.Sign(api.Safe), strings.Join(survived, ", "), api.Safe)
	}
	if j.Totals.Hazards > 0 {
		_, _ = fmt.Fprintf(out, "\nTo repeat a hazard: `bin/%s --hazard HAZARD -- %s`.\n", "oversell judge", j.command())
	} else {
		_, _ = fmt.Fprintf(out, "\n%s Repeat it: `bin/oversell contract -- %s`.\n", j.Totals, j.command())
	}
}

// command returns the command of the adapter.
func (j judgedLibrary) command() string {
	_, command, _ := strings.Cut(j.judgedPage.Command, " -- ")
	return command
}

// sentence describes the verdict on a hazard, and has the command that repeats the recorded run.
func (j judgedLibrary) sentence(row matrix.Row, hazard string, s matrix.Summary) string {
	why, command := s.Why.EN, s.Command
	for _, r := range j.runs {
		if r.Hazard == hazard && r.Fenced == row.Fenced {
			why, command = causeOf(r, "en"), r.Repeat()
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
		return fmt.Errorf("libraries: %w", err)
	}
	for _, j := range all {
		about := matrix.About{Date: j.Date, Machine: j.Machine, Versions: j.Versions, Command: j.judgedPage.Command}
		err := report.WriteFile(filepath.Join(folder, j.ID+".html"), func(w io.Writer) error {
			return matrix.WritePage(w, matrix.Summarise(j.runs), j.runs, about)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func oneLine(text string) string { return strings.ReplaceAll(text, "\n", " ") }
