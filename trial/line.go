package trial

import (
	"fmt"
	"io"
	"strings"

	"oversell/api"
	"oversell/lab/experiment"
	"oversell/lab/measure"
	"oversell/trial/adapter"
	"oversell/trial/lockstest"
	"oversell/view/matrix"
	"oversell/view/report"
	"oversell/view/terminal"
)

// Line is the verdict on one check or one hazard.
type Line struct {
	Verdict api.Verdict
	Name    string // of the check or the hazard
	Text    string
}

// CheckLine describes the outcome of a check.
func CheckLine(o lockstest.CheckResult) Line {
	if o.Inconclusive != "" {
		return Line{api.Inconclusive, o.Check, o.Inconclusive}
	}
	if o.Failed != "" {
		return Line{api.Broken, o.Check, fmt.Sprintf("the lock claims: %s. The check found: %s", o.Claimed, o.Failed)}
	}
	return Line{api.Safe, o.Check, o.Claimed}
}

// HazardLine describes a run of a hazard in a language, en or zh.
func HazardLine(r experiment.Result, lang string) Line {
	text := r.Verdict.In(lang) + map[string]api.Text{
		"agrees":      {EN: ", as the lock claims", ZH: "，与声明一致"},
		"contradicts": {EN: ", but the lock claims otherwise", ZH: "，与声明不符"},
	}[r.Agreement()].In(lang)
	if cause := matrix.Cause(r, lang); cause != "" {
		text += api.Text{EN: ": ", ZH: "："}.In(lang) + cause
	}
	return Line{r.Verdict, strings.Replace(r.Name(), r.Strategy, string(r.Hazard), 1), text}
}

// nameWidth is the width of the names of checks and of most hazards.
const nameWidth = len("exclusion-across")

// Printer prints the verdicts of a trial as they come. With a watcher, it is a Watcher.
type Printer struct {
	Out  io.Writer
	Lang string // en or zh
}

// Part prints a heading.
func (p Printer) Part(title string) { _, _ = fmt.Fprintln(p.Out, "\n"+title) }

// Print prints a line in the colour of its sign, and folds it to the width of the terminal.
func (p Printer) Print(l Line) {
	screen, sign := terminal.Of(p.Out), l.Verdict.Sign()
	text := screen.Wrap(fmt.Sprintf("%s %-*s  %s", sign, nameWidth, l.Name, l.Text), nameWidth+4)
	_, _ = fmt.Fprintln(p.Out, screen.Paint(sign, text))
}

// Checked prints the outcome of a check.
func (p Printer) Checked(o lockstest.CheckResult) { p.Print(CheckLine(o)) }

// Results prints a line for each run.
func (p Printer) Results(results []experiment.Result) {
	for _, r := range results {
		p.Print(HazardLine(r, p.Lang))
	}
}

// Loaded prints the verdict of the load, and a table with the strategy redis beside the lock.
func (p Printer) Loaded(results []measure.Result) {
	screen := terminal.Of(p.Out)
	lesson := report.Lesson{Names: len(adapter.ID), Screen: screen, Lang: p.Lang}
	lesson.Write(p.Out, results[0])
	report.Table(p.Out, results, screen)
}

// Conclude prints the totals, and how to repeat what contradicts a claim.
func (p Printer) Conclude(v Report) {
	_, _ = fmt.Fprintln(p.Out)
	for _, line := range v.Repetitions() {
		_, _ = fmt.Fprintln(p.Out, line)
	}
	text := v.String()
	if load := v.LoadSentence(); load != "" {
		text += " Load: " + load + "."
	}
	_, _ = fmt.Fprintln(p.Out, terminal.Of(p.Out).Wrap(text, 0))
}
