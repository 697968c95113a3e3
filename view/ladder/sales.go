package ladder

import (
	"cmp"
	"slices"
	"time"
)

// lossAt returns the last time from which on more pieces were sold than were taken from the stock.
func (t Recorded) lossAt() (last time.Duration, lost bool) {
	if len(t.taken) == 0 { // the pieces taken are not known
		return 0, false
	}
	steps := slices.Concat(t.sales, t.taken)
	slices.SortFunc(steps, func(a, b sale) int { return cmp.Compare(a.at, b.at) })
	for i, step := range steps {
		isLast := i+1 == len(steps) || steps[i+1].at > step.at // of those at the same time
		// The clocks of lab and replica differ: a write may seem later than its sale.
		if isLast && piecesAt(t.sales, step.at) > piecesAt(t.taken, step.at+sameMoment) {
			last, lost = step.at, true
		}
	}
	return last, lost
}

func piecesAt(steps []sale, at time.Duration) (pieces int) {
	for _, s := range steps {
		if s.at <= at {
			pieces = s.pieces
		}
	}
	return pieces
}
