package dash

import (
	"cmp"
	"net/http"
	"slices"

	"oversell/api"
	"oversell/dash/hub"
	"oversell/lab/experiment"
	"oversell/view/matrix"
)

type matrixView struct {
	Hazards  []hazard
	Families []matrixFamily
	Tally    tally
}

// matrixFamily has the rows of a family of strategies, such as redis.
type matrixFamily struct {
	ID    string
	Title api.Text
	Rows  []matrixRow
}

// matrixFilter says which part of the matrix a page shows. It is in the page's address, so that it
// survives a change of page or language.
type matrixFilter struct {
	Rows, Columns    string // basic or all; Rows may also be a family
	Hazard, Survives string // only rows whose lock survives the hazard (yes), or does not (no)
	Recorded, Claims bool   // show the recorded verdicts, and what the cards claim
}

// filter reads the filter from an address. Recorded verdicts and claims would answer the question
// that a class has to predict, so they are hidden at first, if this machine can run experiments.
func (b *breaks) filter(r *http.Request) matrixFilter {
	show := func(name string) bool {
		return r.FormValue(name) != "" || r.URL.RawQuery == "" && b.s.Binary == "" && b.s.Service == nil
	}
	return matrixFilter{
		Rows: cmp.Or(r.FormValue("rows"), "basic"), Columns: cmp.Or(r.FormValue("columns"), "basic"),
		Hazard: r.FormValue("hazard"), Survives: cmp.Or(r.FormValue("survives"), "yes"),
		Recorded: show("recorded"), Claims: show("claims"),
	}
}

// tally counts results that agree with the cards or contradict the cards. Silent counts all others.
type tally struct{ Agree, Contradict, Silent int }

type matrixRow struct {
	resultKey // without a hazard
	Basic     bool
	Results   []resultView
}

type resultView struct {
	resultKey
	Able      bool // this machine can run the experiment
	AppliesTo bool // the hazard applies if the strategy is named
	Applies   bool // the hazard applies, with or without the fence
	Claim     experiment.Claim
	Running   bool
	Starting  bool            // the lab of the experiment starts, or stops
	Run       *storedResult   // nil before the first run
	Recorded  *matrix.Summary // nil without recorded runs
	Basic     bool            // the hazard is basic
}

// matrix returns all results for the page. The hub's mutex must be locked.
func (b *breaks) matrix() matrixView {
	m := matrixView{Tally: b.tally()}
	shown := experiment.All()
	if b.s.Service != nil {
		shown = slices.DeleteFunc(shown, func(e experiment.Experiment) bool { return !b.isRecorded(e.Hazard) })
	}
	for _, e := range shown {
		h, _ := hazardOf(e.Hazard)
		m.Hazards = append(m.Hazards, h)
	}
	for _, g := range groupsOf(b.s.catalogue.known()) {
		f := matrixFamily{ID: g.Cards[0].Family, Title: g.Title}
		for _, c := range g.Cards {
			for _, fenced := range fences(c) {
				row := matrixRow{resultKey: resultKey{Strategy: c.ID, Fenced: fenced}, Basic: c.Core && !fenced}
				for _, e := range shown {
					row.Results = append(row.Results, b.view(c, e, fenced))
				}
				f.Rows = append(f.Rows, row)
			}
		}
		m.Families = append(m.Families, f)
	}
	return m
}

// isRecorded reports whether a recorded verdict is about the hazard.
func (b *breaks) isRecorded(hazard string) bool {
	for q := range b.recorded {
		if q.Hazard == hazard {
			return true
		}
	}
	return false
}

func fences(c card) []bool {
	if c.Fenced {
		return []bool{false, true}
	}
	return []bool{false}
}

// tally counts the results of all hazards. The hub's mutex must be locked.
func (b *breaks) tally() (t tally) {
	for _, run := range b.runs {
		t.count(run.Result)
	}
	return t
}

func (t *tally) count(r experiment.Result) {
	switch matrix.Agreement(r) {
	case "agrees":
		t.Agree++
	case "contradicts":
		t.Contradict++
	default:
		t.Silent++
	}
}

// column draws these hazards' results in the latest plan. The hub's mutex must be locked.
func (b *breaks) column(hazards ...string) []hub.Part {
	parts := []hub.Part{}
	for _, e := range experiment.All() {
		if !slices.Contains(hazards, e.Hazard) {
			continue
		}
		for _, c := range b.s.catalogue.known() {
			for _, fenced := range fences(c) {
				if p := b.view(c, e, fenced); p.Applies && b.now.includes(p.resultKey) {
					parts = append(parts, b.s.render("break", "result", p.ID(), p))
				}
			}
		}
	}
	return parts
}

// view returns what the page shows about one result. The hub's mutex must be locked.
func (b *breaks) view(c card, e experiment.Experiment, fenced bool) resultView {
	q := resultKey{e.Hazard, c.ID, fenced}
	p := resultView{resultKey: q, Able: b.s.Binary != "", AppliesTo: e.AppliesTo(c.Card), Claim: e.Claim(c.Card, fenced), Run: b.runs[q]}
	p.Applies = p.AppliesTo && (!fenced || e.Fenced) && b.s.Service == nil || p.Run != nil
	p.Running = b.now.Running && b.now.Hazard == e.Hazard && p.Applies && b.now.includes(q)
	p.Starting = b.now.Starting
	p.Basic = e.Basic
	if s, there := b.recorded[q]; there {
		p.Recorded = &s
	}
	return p
}
