package dash

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	"oversell/api"
	"oversell/dash/hub"
	"oversell/lab/experiment"
	"oversell/view/matrix"
	"oversell/view/timeline"
)

type resultPage struct {
	resultView
	Hazard hazard
	Why    api.Text    // the card's reason why the hazard breaks the strategy
	Shown  *matrix.Run // nil before the first run
	Old    *matrix.Run // the recorded run, shown before the first run; nil if there is none
	Jump   *jump
	Next   []nextStep // after a failure
}

// nextStep leads on from a failure, such as to the same experiment with a fencing token.
type nextStep struct {
	Label api.Text
	Path  string
}

// jump is a button that scrolls the timeline to the violation or to the fault.
type jump struct {
	Label                api.Text
	Place, Second, Words string
}

func nextSteps(cards []card, failed card, e experiment.Experiment, q resultKey) (next []nextStep) {
	if e.Fenced && failed.Fenced && !q.Fenced {
		next = append(next, nextStep{bilingual("The same with a fencing token", "加上栅栏号再试"), resultKey{q.Hazard, q.Strategy, true}.Path()})
	}
	survives := func(c card) bool { return c.Core && e.Claim(c.Card, false) == experiment.Protects }
	if i := slices.IndexFunc(cards, survives); i >= 0 {
		other := cards[i].ID
		next = append(next, nextStep{api.Textf("A strategy that survives it: %s", "能经受它的策略：%s", other), resultKey{q.Hazard, other, false}.Path()})
	}
	return append(
		next,
		nextStep{bilingual("Step through it", "单步走一遍"), "/dash/step?strategy=" + q.Strategy},
		nextStep{bilingual("The code", "看代码"), "/dash/learn/" + q.Strategy + "#code"},
	)
}

// timelineStyle serves the style sheet of the timelines, because the pages forbid inline styles.
func timelineStyle(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/css; charset=utf-8")
	_, _ = fmt.Fprint(w, timeline.Style())
}

func (b *breaks) resultPage(w http.ResponseWriter, r *http.Request) {
	q := resultKey{r.PathValue("hazard"), r.PathValue("strategy"), r.FormValue("fenced") == "true"}
	x, err := b.resultOf(r.Context(), q, language(r))
	if err != nil {
		b.s.showProblem(w, r, err)
		return
	}
	title := api.Textf("%s, %s", "%s，%s", q.Hazard, q.Name())
	b.s.write(w, http.StatusOK, "result", view{Lang: language(r), Page: "break", Topic: "result", Title: title, Data: x})
}

func (b *breaks) resultOf(ctx context.Context, q resultKey, lang string) (x resultPage, err error) {
	cards, err := b.s.catalogue.all(ctx)
	if err != nil {
		return x, err
	}
	c, err := findCard(cards, q.Strategy, http.StatusNotFound)
	if err != nil {
		return x, err
	}
	h := slices.IndexFunc(experiment.All(), func(e experiment.Experiment) bool { return e.Hazard == q.Hazard })
	if h < 0 {
		return x, reject(http.StatusNotFound, "Hazard %q does not exist.", "没有故障 %q。", q.Hazard)
	}
	for _, flaw := range cards[c].Breaks {
		if string(flaw.Hazard) == q.Hazard {
			x.Why = flaw.Why
		}
	}
	x.Hazard, _ = hazardOf(q.Hazard)
	b.s.hub.Send("break", func() []hub.Message {
		x.resultView = b.view(cards[c], experiment.All()[h], q.Fenced)
		// With one named strategy, the experiment can also use this strategy's fencing token.
		x.Applies = x.AppliesTo && (!q.Fenced || cards[c].Fenced)
		return nil
	})
	if x.Run == nil {
		if recorded, there := b.recordings()[q]; there {
			x.Old, err = old(cards[c], recorded, lang)
		}
		return x, err
	}
	if x.Run.Verdict.Failed() {
		x.Next = nextSteps(cards, cards[c], experiment.All()[h], q)
	}
	// A recording never changes, so draw it without the hub's mutex.
	run, err := matrix.RunOf(x.Run.Result, lang, "run")
	x.Shown = &run
	if place, second, words := run.Timeline.Violation(); place != "" && x.Run.Verdict == api.Broken {
		x.Jump = &jump{bilingual("go to the first violation", "跳到第一处违规"), place, second, words}
	} else if place, second, words := run.Timeline.Fault(); place != "" {
		x.Jump = &jump{bilingual("go to the fault", "跳到故障处"), place, second, words}
	}
	return x, err
}

// old describes a recorded run.
func old(c card, r experiment.Result, lang string) (*matrix.Run, error) {
	r.Recording = c.Leased(r.Recording)
	run, err := matrix.RunOf(r, lang, "recorded")
	return &run, err
}
