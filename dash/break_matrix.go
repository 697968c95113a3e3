package dash

import (
	"slices"

	"oversell/lab/experiment"
	"oversell/lab/matrix"
)

// matrixView holds what the page shows: a row for each strategy, a column for each hazard.
type matrixView struct {
	Hazards []hazard
	Rows    []matrixRow
	Tally   tally
}

// tally counts the results by their agreement with the cards.
type tally struct{ Agree, Contradict, Silent int }

// matrixRow is the row of a strategy, with or without its fence.
type matrixRow struct {
	Strategy string
	Fenced   bool
	Results  []resultView
}

// resultView is what the page shows for one hazard on one strategy.
type resultView struct {
	resultKey
	Able    bool // to run it
	ByHand  bool // it can be run when the strategy is named
	Applies bool // the hazard applies to the strategy
	Claim   experiment.Claim
	Running bool
	Run     *storedResult // nil: not run yet
}

// resultKeys returns every hazard with every strategy that it applies to.
func resultKeys(cards []experiment.Card) (all []resultKey) {
	for _, c := range cards {
		for _, e := range experiment.All() {
			if !e.AppliesTo(c) {
				continue
			}
			all = append(all, resultKey{e.Hazard, c.ID, false})
			if c.Fenced {
				all = append(all, resultKey{e.Hazard, c.ID, true})
			}
		}
	}
	return all
}

// matrix is called in the hub's turn.
func (b *breaks) matrix() matrixView {
	m := matrixView{Hazards: hazards(), Tally: b.tally()}
	for _, card := range b.cards {
		m.Rows = append(m.Rows, b.row(card, false))
		if card.Fenced {
			m.Rows = append(m.Rows, b.row(card, true))
		}
	}
	return m
}

// tally is called in the hub's turn.
func (b *breaks) tally() (t tally) {
	for _, run := range b.runs {
		switch run.Agreement() {
		case "agrees":
			t.Agree++
		case "contradicts":
			t.Contradict++
		default:
			t.Silent++
		}
	}
	return t
}

// column draws the results of these hazards that the plan in progress runs. It is called in
// the hub's turn.
func (b *breaks) column(hazards ...string) []part {
	parts := []part{}
	for _, e := range experiment.All() {
		if !slices.Contains(hazards, e.Hazard) {
			continue
		}
		for _, card := range b.cards {
			for _, fenced := range []bool{false, true} {
				if p := b.view(card, e, fenced); p.Applies && b.now.includes(p.resultKey) {
					parts = append(parts, b.s.draw("break", "result", p.ID(), p))
				}
			}
		}
	}
	return parts
}

func (b *breaks) row(card experiment.Card, fenced bool) matrixRow {
	s := matrixRow{Strategy: card.ID, Fenced: fenced}
	for _, e := range experiment.All() {
		s.Results = append(s.Results, b.view(card, e, fenced))
	}
	return s
}

// view is called in the hub's turn.
func (b *breaks) view(card experiment.Card, e experiment.Experiment, fenced bool) resultView {
	q := resultKey{e.Hazard, card.ID, fenced}
	p := resultView{resultKey: q, Able: b.able(), ByHand: e.AppliesTo(card), Claim: e.Claim(card, fenced), Run: b.runs[q]}
	p.Applies = e.AppliesTo(card) && (!fenced || card.Fenced && e.Fenced) || p.Run != nil
	p.Running = b.now.Running && b.now.Hazard == e.Hazard && p.Applies && b.now.includes(q)
	return p
}

// Class returns the style of the verdict.
func (r *storedResult) Class() string { return matrix.Class(r.Verdict) }

// Sign returns the sign of the verdict.
func (r *storedResult) Sign() string { return matrix.Sign(r.Verdict) }

// Word returns the word of the verdict.
func (r *storedResult) Word() Text { return Text(matrix.Word(r.Verdict)) }

// Agreement returns agrees, contradicts, or nothing where there is no claim.
func (r *storedResult) Agreement() string { return matrix.Agreement(r.Result) }

// Sentence returns the verdict as a sentence.
func (r *storedResult) Sentence() Text { return Text(matrix.Sentence(r.Result)) }
