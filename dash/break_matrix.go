package dash

import (
	"slices"

	"oversell/lab/experiment"
	"oversell/lab/matrix"
)

type matrixView struct {
	Hazards []hazard
	Rows    []matrixRow
	Tally   tally
}

// tally counts results that agree with the cards or contradict the cards. Silent counts all others.
type tally struct{ Agree, Contradict, Silent int }

type matrixRow struct {
	resultKey // without a hazard
	Results   []resultView
}

type resultView struct {
	resultKey
	Able      bool // this machine can run the experiment
	AppliesTo bool // the hazard applies if the strategy is named
	Applies   bool // the hazard applies, with or without the fence
	Claim     experiment.Claim
	Running   bool
	Run       *storedResult // nil before the first run
}

// matrix returns all results for the page. The hub's mutex must be locked.
func (b *breaks) matrix() matrixView {
	m := matrixView{Hazards: hazards(), Tally: b.tally()}
	for _, c := range b.s.catalogue.known() {
		for _, fenced := range fences(c) {
			row := matrixRow{resultKey: resultKey{Strategy: c.ID, Fenced: fenced}}
			for _, e := range experiment.All() {
				row.Results = append(row.Results, b.view(c, e, fenced))
			}
			m.Rows = append(m.Rows, row)
		}
	}
	return m
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
func (b *breaks) column(hazards ...string) []part {
	parts := []part{}
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
	p.Applies = p.AppliesTo && (!fenced || e.Fenced) || p.Run != nil
	p.Running = b.now.Running && b.now.Hazard == e.Hazard && p.Applies && b.now.includes(q)
	return p
}
