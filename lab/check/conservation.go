package check

import (
	"oversell/api"
	"oversell/lab/history"
)

// Conservation is the result of invariant I1, in pieces: sold = initial - remaining <= initial.
type Conservation struct {
	Initial   int
	Remaining int
	Sold      int // certainly sold
	Unknown   int // perhaps sold
	LostMin   int // lost updates if no unknown request sold anything
	LostMax   int // lost updates if all unknown requests sold
	Verdict   api.Verdict
}

// Stock checks conservation. The remaining stock alone proves nothing. If 5001 of 5000 pieces were
// sold and 0 are left, the row looks right, but one buyer gets nothing.
func Stock(ops []history.Op, initial, remaining int) Conservation {
	c := Undecidable(ops, initial)
	c.Remaining = remaining
	taken := initial - remaining
	c.LostMin, c.LostMax = c.Sold-taken, c.Sold+c.Unknown-taken
	switch {
	case c.LostMin > 0, c.LostMax < 0, taken > initial:
		// The unknown outcomes cannot explain these cases: more was sold than taken, more was taken than
		// all requests can have bought, or the count is below zero.
		c.Verdict = api.Broken
	case c.LostMax == 0:
		// The missing pieces show that every unknown request sold.
		c.Verdict = api.Holds
	}
	return c
}

// Undecidable returns the check of a run whose remaining stock could not be read.
func Undecidable(ops []history.Op, initial int) Conservation {
	return Conservation{
		Initial: initial, Remaining: initial,
		Sold: history.Taken(ops, history.OK), Unknown: history.Taken(ops, history.Unknown),
		Verdict: api.Inconclusive,
	}
}

// Lost returns how many pieces were certainly sold but not taken from the stock. A negative number
// counts pieces that were taken from the stock but certainly not sold.
func (c Conservation) Lost() int { return max(c.LostMin, min(0, c.LostMax)) }

// Oversold returns the number of pieces that were certainly sold and never existed.
func (c Conservation) Oversold() int { return max(0, c.Sold-c.Initial) }
