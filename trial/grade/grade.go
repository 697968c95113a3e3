package grade

import (
	"fmt"
	"io"
	"slices"
	"time"

	"oversell/api"
	"oversell/lab/experiment"
	"oversell/lab/history"
	"oversell/lab/measure"
	"oversell/trial/adapter"
	"oversell/view/matrix"
	"oversell/view/report"
	"oversell/view/terminal"
)

// Finding is the result of one requirement.
type Finding struct {
	Requirement string `json:"requirement"`
	// Kept means that an earlier exercise has introduced the requirement.
	Kept bool `json:"kept,omitempty"`
	Met  bool `json:"met"`
	// Found says what was found, or why the requirement was not checked.
	Found api.Text `json:"found"`
	// Checked is false if the time was over, or an earlier failure made the check useless.
	Checked bool `json:"checked"`
}

// Grade is the result of a submission.
type Grade struct {
	Command  string        `json:"command"`
	Hello    adapter.Hello `json:"hello"`
	Exercise Exercise      `json:"exercise"`
	Score    int           `json:"score"` // requirements that are met
	Of       int           `json:"of"`
	Findings []Finding     `json:"findings"`
	// Hint belongs to the first requirement that failed. It is nil if all are met.
	Hint *Hint `json:"hint,omitempty"`
	// Counterexample is the recorded run behind the first failure, if there is one.
	Counterexample *experiment.Result `json:"counterexample,omitempty"`

	results []experiment.Result // with their recordings
}

// Of returns the grade of these findings.
func Of(e Exercise, findings []Finding) Grade {
	g := Grade{Exercise: e, Of: len(findings), Findings: findings}
	for _, f := range findings {
		if f.Met {
			g.Score++
		}
	}
	if failed := g.Failed(); failed != nil {
		g.Hint = hintFor(failed.Requirement)
	}
	return g
}

// Failed returns the first requirement that was checked and is not met, or nil. If none was checked,
// it returns the first one that is not met.
func (g Grade) Failed() *Finding {
	i := slices.IndexFunc(g.Findings, func(f Finding) bool { return !f.Met && f.Checked })
	if i < 0 {
		i = slices.IndexFunc(g.Findings, func(f Finding) bool { return !f.Met })
	}
	if i < 0 {
		return nil
	}
	return &g.Findings[i]
}

// Passed reports whether all requirements are met.
func (g Grade) Passed() bool { return g.Score == g.Of }

// counterexample returns the run that shows the failure: its own run for a hazard, and for a failed
// check the first run that did harm, if there is one.
func (g Grade) counterexample() *experiment.Result {
	failed := g.Failed()
	if failed == nil {
		return nil
	}
	harmful := func(r experiment.Result) bool { return r.Verdict != api.Safe && len(r.Recording.Events) > 0 }
	i := slices.IndexFunc(g.results, func(r experiment.Result) bool {
		return harmful(r) && Requirement{Hazard: r.Hazard, Fenced: r.Fenced}.Name() == failed.Requirement
	})
	if i < 0 {
		i = slices.IndexFunc(g.results, harmful)
	}
	if i < 0 {
		return nil
	}
	return &g.results[i]
}

// Print prints the score, the first counterexample and the hint in a language, en or zh.
func (g Grade) Print(out io.Writer, lang string) {
	screen := terminal.Of(out)
	_, _ = fmt.Fprintf(out, "\nScore: %d of %d.", g.Score, g.Of)
	unchecked := slices.DeleteFunc(slices.Clone(g.Findings), func(f Finding) bool { return f.Checked })
	if len(unchecked) > 0 {
		_, _ = fmt.Fprintf(out, " For %d of them: %s", len(unchecked), unchecked[0].Found.In(lang))
	}
	_, _ = fmt.Fprintln(out)
	failed := g.Failed()
	if failed == nil {
		return
	}
	first := "The first counterexample, " + failed.Requirement + ": " + failed.Found.In(lang)
	_, _ = fmt.Fprintln(out, "\n"+screen.Wrap(first, 2))
	if g.Counterexample != nil {
		_, _ = fmt.Fprintln(out)
		matrix.WriteEventLog(out, *g.Counterexample, screen, lang)
	}
	if h := g.Hint; h != nil {
		const format = "Hint: %s The lesson: docs/course/%s, and the strategy: oversell strategies %s"
		hint := fmt.Sprintf(format, h.Text.In(lang), h.Lesson, h.Strategy)
		_, _ = fmt.Fprintln(out, screen.Wrap(hint, 2))
	}
}

// WriteJSON writes the grade as one JSON object, without the recording of the counterexample.
func (g Grade) WriteJSON(w io.Writer) error {
	if g.Counterexample != nil {
		run := *g.Counterexample
		run.Recording = history.Recording{}
		g.Counterexample = &run
	}
	return report.WriteLines(w, g)
}

// WritePage writes a page in a language, en or zh, with the timelines of the runs.
func (g Grade) WritePage(w io.Writer, machine measure.Machine, lang string) error {
	return matrix.WritePage(w, matrix.Summarise(g.results), g.results, matrix.About{
		Date: time.Now().Format(time.DateOnly), Machine: machine.String(), Command: g.Command,
		Contract: fmt.Sprintf("score %d of %d", g.Score, g.Of),
	}, lang)
}
