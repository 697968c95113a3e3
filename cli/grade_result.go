package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"time"

	"oversell/api"
	"oversell/lab/experiment"
	"oversell/lab/grade"
	"oversell/lab/matrix"
	"oversell/lab/report"
	"oversell/lab/terminal"
	"oversell/locks/adapter"
)

// conclude prints the score, the counterexample and the hint, and writes the files. The error has
// the exit status.
func (g *grading) conclude(ctx context.Context, out, errOut io.Writer) error {
	graded := grade.Of(g.exercise, g.findings())
	if err := g.print(graded); err != nil {
		return fmt.Errorf("grade: %w", err)
	}
	failed := g.files.write(map[string]func(io.Writer) error{
		"json": func(w io.Writer) error { return g.writeJSON(w, graded) },
		"html": func(w io.Writer) error {
			about := matrix.About{
				Date: time.Now().Format(time.DateOnly), Machine: report.ThisMachine(ctx).String(), Command: g.command,
				Contract: fmt.Sprintf("score %d of %d", graded.Score, graded.Of),
			}
			return matrix.WritePage(w, matrix.Summarise(g.results), g.results, about)
		},
	}, out, errOut)
	if failed == nil && !graded.Passed() {
		return &exit{1, nil}
	}
	return failed
}

func (g *grading) print(graded grade.Grade) error {
	screen, lang := terminal.Of(g.text), language()
	unchecked := 0
	for _, f := range graded.Findings {
		if !f.Checked {
			unchecked++
		}
	}
	_, _ = fmt.Fprintf(g.text, "\nScore: %d of %d.", graded.Score, graded.Of)
	if unchecked > 0 {
		_, _ = fmt.Fprintf(g.text, " For %d of them: %s", unchecked, g.unchecked().In(lang))
	}
	_, _ = fmt.Fprintln(g.text)
	failed := graded.Failed()
	if failed == nil {
		return nil
	}
	_, _ = fmt.Fprintln(g.text, "\n"+screen.Wrap("The first counterexample, "+failed.Requirement+": "+failed.Found.In(lang), 2))
	if run := g.counterexample(*failed); run != nil {
		_, _ = fmt.Fprintln(g.text)
		if err := matrix.WriteEventLog(g.text, *run, screen, lang); err != nil {
			return err
		}
	}
	if h := graded.Hint; h != nil {
		hint := fmt.Sprintf("Hint: %s The lesson: docs/course/%s, and the strategy: oversell strategies %s", h.Text.In(lang), h.Lesson, h.Strategy)
		_, _ = fmt.Fprintln(g.text, screen.Wrap(hint, 2))
	}
	return nil
}

// counterexample returns the run that shows the failure: its own run for a hazard, and for a failed
// check the first run that did harm, if there is one.
func (g *grading) counterexample(failed grade.Finding) *experiment.Result {
	harmful := func(r experiment.Result) bool { return r.Verdict != api.Safe && len(r.Recording.Events) > 0 }
	i := slices.IndexFunc(g.results, func(r experiment.Result) bool {
		return harmful(r) && grade.Requirement{Hazard: r.Hazard, Fenced: r.Fenced}.Name() == failed.Requirement
	})
	if i < 0 {
		i = slices.IndexFunc(g.results, harmful)
	}
	if i < 0 {
		return nil
	}
	return &g.results[i]
}

func (g *grading) writeJSON(w io.Writer, graded grade.Grade) error {
	out := json.NewEncoder(w)
	out.SetIndent("", " ")
	return out.Encode(struct {
		Command string        `json:"command"`
		Hello   adapter.Hello `json:"hello"`
		grade.Grade
		// Counterexample is the recorded run behind the first failure, if there is one.
		Counterexample *experiment.Result `json:"counterexample,omitempty"`
	}{g.command, g.hello, graded, g.shown(graded)})
}

func (g *grading) shown(graded grade.Grade) *experiment.Result {
	if failed := graded.Failed(); failed != nil {
		return g.counterexample(*failed)
	}
	return nil
}
