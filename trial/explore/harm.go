package explore

import (
	"cmp"
	"slices"
)

// Harm is a kind of harm that a schedule does.
type Harm string

// These are the kinds of harm. Their texts are the names of the counts of a Result in JSON.
const (
	LosesUpdate   Harm = "oversold"
	WaitsInVain   Harm = "stalled"
	WaitsALease   Harm = "late"
	HasTwoHolders Harm = "two_holders"
	GivesUp       Harm = "aborted"
)

// kindOfHarm says whether a schedule does harm of a kind, and where a result counts such schedules.
type kindOfHarm struct {
	Harm
	done  func(Ending) bool
	count func(*Result) *int
}

// kindsOfHarm returns all kinds of harm, the worst one first.
func kindsOfHarm() []kindOfHarm {
	return []kindOfHarm{
		{LosesUpdate, Ending.Oversold, func(r *Result) *int { return &r.Oversold }},
		{WaitsInVain, func(o Ending) bool { return slices.Contains(o.Ends, Stalled) }, func(r *Result) *int { return &r.Stalled }},
		{WaitsALease, func(o Ending) bool { return o.Late }, func(r *Result) *int { return &r.Late }},
		{HasTwoHolders, func(o Ending) bool { return o.Two }, func(r *Result) *int { return &r.Two }},
		{GivesUp, func(o Ending) bool { return slices.Contains(o.Ends, Aborted) }, func(r *Result) *int { return &r.Aborted }},
	}
}

// compare keeps the shortest schedule of the worst harm. Of several, it is the one with the first
// choices, so the number of workers has no effect.
func (s *search) compare(o Ending, path []*node) {
	kinds := kindsOfHarm()
	worst := slices.IndexFunc(kinds, func(k kindOfHarm) bool { return k.done(o) })
	if worst < 0 {
		return
	}
	var choices []int
	for _, n := range path {
		choices = append(choices, n.chosen)
	}
	if s.first != nil {
		before := slices.IndexFunc(kinds, func(k kindOfHarm) bool { return k.Harm == s.result.Harm })
		if cmp.Or(cmp.Compare(before, worst), cmp.Compare(len(s.first), len(choices)), slices.Compare(s.first, choices)) <= 0 {
			return
		}
	}
	s.first, s.result.Harm, s.result.Shortest = choices, kinds[worst].Harm, nil
	for _, n := range path {
		s.result.Shortest = append(s.result.Shortest, n.moves[n.chosen].step())
	}
}
