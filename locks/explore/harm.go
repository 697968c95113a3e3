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

// harms returns all kinds of harm, the worst one first.
func harms() []Harm { return []Harm{LosesUpdate, WaitsInVain, WaitsALease, HasTwoHolders, GivesUp} }

// Has reports whether the schedule does harm of this kind.
func (o Ending) Has(h Harm) bool {
	switch h {
	case LosesUpdate:
		return o.Oversold()
	case WaitsInVain:
		return slices.Contains(o.Ends, Stalled)
	case WaitsALease:
		return o.Late
	case HasTwoHolders:
		return o.Two
	case GivesUp:
		return slices.Contains(o.Ends, Aborted)
	}
	return false
}

// Count returns the number of schedules that do harm of this kind.
func (r Result) Count(h Harm) int { return *r.count(h) }

func (r *Result) count(h Harm) *int {
	switch h {
	case LosesUpdate:
		return &r.Oversold
	case WaitsInVain:
		return &r.Stalled
	case WaitsALease:
		return &r.Late
	case HasTwoHolders:
		return &r.Two
	case GivesUp:
		return &r.Aborted
	}
	return new(int)
}

// compare keeps the shortest schedule of the worst harm. Of several, it is the one with the first
// choices, so the number of workers has no effect.
func (s *search) compare(o Ending, path []*node) {
	worst := slices.IndexFunc(harms(), o.Has)
	if worst < 0 {
		return
	}
	var choices []int
	for _, n := range path {
		choices = append(choices, n.chosen)
	}
	if s.first != nil {
		before := slices.Index(harms(), s.result.Harm)
		if cmp.Or(cmp.Compare(before, worst), cmp.Compare(len(s.first), len(choices)), slices.Compare(s.first, choices)) <= 0 {
			return
		}
	}
	s.first, s.result.Harm, s.result.Shortest = choices, harms()[worst], nil
	for _, n := range path {
		s.result.Shortest = append(s.result.Shortest, n.moves[n.chosen].step())
	}
}
