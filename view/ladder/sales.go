package ladder

import (
	"cmp"
	"slices"
	"time"
)

// missing is a time in which more pieces were sold than were taken from the stock.
type missing struct {
	from, to    time.Duration
	sold, taken int
}

func (t Recorded) missing() (all []missing) {
	if len(t.taken) == 0 { // the pieces taken are not known
		return nil
	}
	steps := slices.Concat(t.sales, t.taken)
	slices.SortFunc(steps, func(a, b sale) int { return cmp.Compare(a.at, b.at) })
	for i, step := range steps {
		end := t.to
		if i+1 < len(steps) {
			end = steps[i+1].at
		}
		// The clocks of lab and replica differ: a write may seem later than its sale.
		sold, taken := piecesAt(t.sales, step.at), piecesAt(t.taken, step.at+sameMoment)
		if sold > taken && end > step.at {
			all = append(all, missing{step.at, end, sold, taken})
		}
	}
	return all
}

func piecesAt(steps []sale, at time.Duration) (pieces int) {
	for _, s := range steps {
		if s.at <= at {
			pieces = s.pieces
		}
	}
	return pieces
}
