package matrix

import (
	"embed"
	"html/template"
	"strings"

	"oversell/lab/experiment"
	"oversell/view/ladder"
)

// RunTemplates has run.html.tmpl, whose templates verdict, plan and left render a Run.
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
	Left     string // the number of requests that are not in the picture
}

// RunOf describes a run in a language, en or zh. The id must be unique on the page.
func RunOf(r experiment.Result, lang, id string) Run {
	run := Run{
		ID: id, Class: r.Verdict.Class(), Mark: r.Verdict.Sign() + " " + r.Verdict.In(lang),
		Sentence: Sentence(r).In(lang), Difference: ladder.Difference(r.Sold, r.Taken).In(lang), Why: whyOf(r, lang), Recorded: ladder.OfRecording(r.Recording).In(lang),
		Plan: PlanOf(r, lang),
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
