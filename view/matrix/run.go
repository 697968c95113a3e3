package matrix

import (
	"embed"
	"fmt"
	"html/template"
	"strings"

	"oversell/lab/experiment"
	"oversell/view/ladder"
	"oversell/view/terminal"
)

// RunTemplates has run.html.tmpl, whose templates verdict and tables render a Run.
//
//go:embed run.html.tmpl
var RunTemplates embed.FS

// Run has the texts and the picture of one run for a page, in one language.
type Run struct {
	ID, Class, Mark, Sentence, Difference, Why string
	// Picture is the drawing of Recorded, and empty if there is no recording to draw.
	Recorded ladder.Recorded
	Picture  template.HTML
	Cause    string // what the picture shows, in a sentence; may be empty
	Plan     Plan   // that was drawn, or made up by a user
	Tables   []terminal.Table
	Left     string // the number of requests that are not in the picture
}

// RunOf describes a run in a language, en or zh. The id must be unique on the page.
func RunOf(r experiment.Result, lang, id string) Run {
	run := Run{
		ID: id, Class: r.Verdict.Class(), Mark: r.Verdict.Sign() + " " + r.Verdict.In(lang),
		Sentence: Sentence(r).In(lang), Difference: ladder.Difference(r.Sold, r.Taken).In(lang), Why: whyOf(r, lang), Recorded: ladder.OfRecording(r.Recording).In(lang),
		Plan: PlanOf(r, lang),
	}
	if t := figuresTable(r.Figures, lang); len(t.Rows) > 0 {
		run.Tables = []terminal.Table{t}
	}
	if !run.Recorded.Empty() {
		run.Left, run.Cause, run.Picture = run.Recorded.Left(), run.Recorded.Cause(), run.Recorded.Ladder().Inline(id+".picture")
	}
	return run
}

// whyOf leaves out the counts, which the difference says.
func whyOf(r experiment.Result, lang string) string {
	return strings.TrimSpace(strings.TrimPrefix(r.Why.In(lang), r.Counts().In(lang)))
}

func figuresTable(figures []experiment.Figure, lang string) terminal.Table {
	t := terminal.Texts("Response times in ms, by the way of measuring", "measured", "requests", "median", "99%", "maximum", "frozen for")
	if lang == "zh" {
		t = terminal.Texts("响应时间（毫秒），按不同的测量方法", "测量方法", "请求数", "中位数", "99%", "最大", "停顿")
	}
	for i := range t.Columns[1:] {
		t.Columns[i+1].Right = true
		if i > 2 { // the maximum, and the length of the freeze
			t.Columns[i+1].Drop = i
		}
	}
	for _, f := range figures {
		t.Add(f.Loop.In(lang), fmt.Sprint(f.Samples), fmt.Sprintf("%.1f", f.P50), fmt.Sprintf("%.1f", f.P99), fmt.Sprintf("%.1f", f.Max), fmt.Sprintf("%.0f", f.FrozenMS))
	}
	return t
}
