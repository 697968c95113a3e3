package dash

import (
	"cmp"
	"context"
	"html/template"
	"net/http"
	"slices"

	"oversell/api"
	"oversell/lab/experiment"
	"oversell/view/matrix"
)

// resultPage asks whether the strategy survives the hazard. After the answer, it shows a run.
type resultPage struct {
	resultView
	Card       api.Card
	Experiment experiment.Experiment
	Answer     string      // survives, breaks or show; empty before the answer
	Why        api.Text    // the card's reason why the hazard breaks the strategy
	Shown      *matrix.Run // of this lab, or else the recorded one; nil without both
	Other      *resultView // the same with the fence, or without it; nil if the strategy has none
	Both       *matrix.Run // of Other, to compare; or nil
	Plan       matrix.Plan // of the run, or of the hazard
	Safer      string      // a basic strategy whose card claims that it survives; may be empty
}

// System draws the system with the place of the lock.
func (x resultPage) System(lang string) template.HTML { return systemWith(x.Card, lang) }

// Survived reports whether the strategy was correct in the run that the page shows.
func (x resultPage) Survived() bool { return survives(x.Verdict()) }

// Right reports whether the answer was right.
func (x resultPage) Right() bool { return (x.Answer == "survives") == x.Survived() }

// Compared returns the address that shows the runs with and without the fence.
func (x resultPage) Compared() string {
	return resultKey{x.Hazard, x.Strategy, false}.Shown() + "&both=on"
}

func (b *breaks) resultPage(r *http.Request) (view, error) {
	q := resultKey{api.Hazard(r.PathValue("hazard")), r.PathValue("strategy"), r.FormValue("fenced") == "true"}
	x, err := b.resultOf(r.Context(), q)
	x.Plan = b.planOf(x.resultView, language(r))
	if err == nil && slices.Contains([]string{"survives", "breaks", "show"}, r.FormValue("answer")) {
		x.Answer = r.FormValue("answer")
		x.Shown = b.drawn(x.resultView, language(r), "run")
		if x.Shown != nil && x.Other != nil && r.FormValue("both") != "" {
			x.Both = b.drawn(*x.Other, language(r), "other")
		}
	}
	return view{Page: "break", Topic: "result", Title: api.Textf("%s, %s", "%s，%s", q.Hazard, q.Name()), Data: x}, err
}

func (b *breaks) resultOf(ctx context.Context, q resultKey) (x resultPage, err error) {
	cards, err := b.s.catalogue.all(ctx)
	if err != nil {
		return x, err
	}
	c, err := findCard(cards, q.Strategy, http.StatusNotFound)
	if err != nil {
		return x, err
	}
	var e experiment.Experiment
	b.s.hub.Do(func() {
		if i := slices.IndexFunc(b.experiments(), func(e experiment.Experiment) bool { return e.Hazard == q.Hazard }); i >= 0 {
			e = b.experiments()[i]
		}
	})
	if e.Hazard == "" {
		return x, reject(http.StatusNotFound, "Hazard %q does not exist.", "没有故障 %q。", q.Hazard)
	}
	for _, flaw := range c.Breaks {
		if flaw.Hazard == q.Hazard {
			x.Why = flaw.Why
		}
	}
	x.Card, x.Experiment = c, e
	b.s.hub.Do(func() {
		x.resultView = b.view(c, e, q.Fenced)
		if e.Fenced && c.Fenced {
			other := b.view(c, e, !q.Fenced)
			x.Other = &other
		}
	})
	// With one named strategy, the experiment can also use this strategy's fencing token.
	x.Applies = x.AppliesTo && (!q.Fenced || c.Fenced)
	if i := slices.IndexFunc(cards, func(c api.Card) bool { return c.Core && e.Claim(c, false) == api.Protects }); i >= 0 {
		x.Safer = cards[i].ID
	}
	return x, nil
}

// planOf describes the plan of the run that drawn draws, or else of the hazard.
func (b *breaks) planOf(p resultView, lang string) matrix.Plan {
	r := b.shown(p)
	r.Hazard, r.Strategy, r.Fenced, r.Plan = p.Hazard, p.Strategy, p.Fenced, cmp.Or(r.Plan, p.Plan)
	c, _ := findCard(b.s.catalogue.known(), p.Strategy, 0) // without a card: the steps of the plan
	return matrix.PlanOf(r.Planned(c), lang)
}

// shown returns the result of an experiment that has run in this lab, or else the one that is stored in the program.
func (b *breaks) shown(p resultView) experiment.Result {
	if p.Run != nil {
		return p.Run.Result
	}
	return b.recordedRun(p)
}

// drawn draws the run of this lab, or else the recorded one, or returns nil without a run. Some recorded verdicts have
// no recording. A recording never changes, so it needs no mutex.
func (b *breaks) drawn(p resultView, lang, id string) *matrix.Run {
	if p.Verdict() == "" {
		return nil
	}
	run := matrix.RunOf(b.shown(p), lang, id)
	return &run
}
