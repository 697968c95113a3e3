package dash

import (
	"context"
	"fmt"
	"html/template"
	"net/http"
	"slices"

	"oversell/lab/experiment"
	"oversell/lab/timeline"
)

// resultPage is the page of one result.
type resultPage struct {
	resultView
	Hazard  hazard
	Why     Text // the reason on the card, if it claims that the hazard breaks it
	Picture template.HTML
	Jump    *jump
	Tables  []table
}

// jump is a position in the picture.
type jump struct {
	Label                Text
	Place, Second, Words string
}

// table has its headings in both languages.
type table struct {
	Caption Text
	Head    []Text
	Rows    [][]string
}

// timelineStyle serves the style of the pictures: the policy of the pages forbids inline styles.
func timelineStyle(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/css; charset=utf-8")
	_, _ = fmt.Fprint(w, timeline.Style())
}

func (b *breaks) resultPage(w http.ResponseWriter, r *http.Request) {
	cards, err := b.learn(r.Context())
	if err != nil {
		b.s.sorry(w, r, http.StatusServiceUnavailable, unreachable(err))
		return
	}
	q := resultKey{r.PathValue("hazard"), r.PathValue("strategy"), r.FormValue("fenced") == "true"}
	all := experiment.All()
	h := slices.IndexFunc(all, func(e experiment.Experiment) bool { return e.Hazard == q.Hazard })
	c := slices.IndexFunc(cards, func(c experiment.Card) bool { return c.ID == q.Strategy })
	if h < 0 || c < 0 {
		b.s.sorry(w, r, http.StatusNotFound, Text{
			fmt.Sprintf("Hazard %q or strategy %q does not exist.", q.Hazard, q.Strategy), fmt.Sprintf("没有危险 %q，或没有策略 %q。", q.Hazard, q.Strategy),
		})
		return
	}
	x := resultPage{Why: b.s.catalogue.why(r.Context(), q)}
	x.Hazard, _ = hazardOf(q.Hazard)
	b.s.hub.send("break", func() []message {
		x.resultView = b.view(cards[c], all[h], q.Fenced)
		// A strategy that is named may also run with its fence.
		x.Applies = all[h].AppliesTo(cards[c]) && (!q.Fenced || cards[c].Fenced)
		return nil
	})
	if x.Run != nil {
		if err := x.draw(language(r)); err != nil {
			b.s.sorry(w, r, http.StatusInternalServerError, Text{err.Error(), err.Error()})
			return
		}
	}
	title := Text{q.Hazard + ", " + q.Name(), q.Hazard + "，" + q.Name()}
	b.s.write(w, r, http.StatusOK, "result", view{Lang: language(r), Page: "break", Topic: "result", Title: title, Data: x})
}

// draw draws the recording. It may run outside the hub's turn: a recording never changes.
func (x *resultPage) draw(lang string) (err error) {
	if f := x.Run.Figures; len(f) > 0 {
		x.Tables = append(x.Tables, figuresOf(f))
	}
	t := timeline.Of(x.Run.Recording).In(lang)
	if t.Empty() {
		return nil
	}
	if x.Picture, err = t.Inline("picture"); err != nil {
		return err
	}
	if place, second, words := t.Violation(); place != "" && x.Run.Verdict == experiment.Broken {
		x.Jump = &jump{Text{"go to the first violation", "跳到第一处违规"}, place, second, words}
	} else if place, second, words := t.Fault(); place != "" {
		x.Jump = &jump{Text{"go to the fault", "跳到故障处"}, place, second, words}
	}
	for _, from := range []timeline.Table{t.Requests(), t.Events()} {
		if len(from.Rows) > 0 {
			x.Tables = append(x.Tables, tableOf(from))
		}
	}
	return nil
}

// why returns the reason on the card, if it claims that the hazard breaks the strategy.
func (l *catalogue) why(ctx context.Context, q resultKey) Text {
	all, _ := l.all(ctx) // without them there is no page at all
	for _, c := range all {
		for _, b := range c.Breaks {
			if c.ID == q.Strategy && string(b.Hazard) == q.Hazard {
				return Text(b.Why)
			}
		}
	}
	return Text{}
}

// tableOf converts a timeline's table, which is in the page's language already.
func tableOf(from timeline.Table) table {
	t := table{Caption: Text{from.Caption, from.Caption}, Rows: from.Rows}
	for _, head := range from.Head {
		t.Head = append(t.Head, Text{head, head})
	}
	return t
}

func figuresOf(figures []experiment.Figure) table {
	t := table{
		Caption: Text{"Response times in ms, by the way of measuring", "响应时间（毫秒），按不同的测量方法"},
		Head:    []Text{{"measured", "测量方法"}, {"requests", "请求数"}, {"median", "中位数"}, {"99%", "99%"}, {"maximum", "最大"}, {"frozen for", "停顿"}},
	}
	for _, f := range figures {
		t.Rows = append(t.Rows, []string{
			f.Loop, fmt.Sprint(f.Samples), fmt.Sprintf("%.1f", f.P50), fmt.Sprintf("%.1f", f.P99), fmt.Sprintf("%.1f", f.Max), fmt.Sprintf("%.0f", f.FrozenMS),
		})
	}
	return t
}
