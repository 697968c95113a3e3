package check

import (
	"fmt"

	"oversell/lab/history"
)

// Reconciliation is the fifth invariant (I5), for stock that is kept outside MySQL as well:
// once both are reconciled, initial = remaining + sold + reserved. Counts are pieces.
type Reconciliation struct {
	Initial   int
	Remaining int // in MySQL
	Reserved  int // set aside outside MySQL, and not sold yet
	Sold      int // surely sold
	Unknown   int // perhaps sold
	// Missing pieces were taken from the stock and neither sold nor reserved. Below zero:
	// pieces that were sold or reserved twice.
	MissingMin int // if all unknown requests sold
	MissingMax int // if none of them did
	Verdict    Verdict
	Why        string
}

// StockElsewhere checks reconciliation. It mirrors conservation: there a crash leads to too
// many sales, here a crash between the two stocks leads to too few.
func StockElsewhere(ops []history.Op, initial, remaining, reserved int) Reconciliation {
	sold, unknown := history.Taken(ops, history.OK), history.Taken(ops, history.Unknown)
	missing := initial - remaining - sold - reserved
	c := Reconciliation{
		Initial: initial, Remaining: remaining, Reserved: reserved, Sold: sold, Unknown: unknown,
		MissingMin: missing - unknown, MissingMax: missing,
	}
	switch {
	case remaining < 0 || reserved < 0:
		c.Verdict = Broken
		c.Why = fmt.Sprintf("%d remaining and %d reserved: a stock fell below zero", remaining, reserved)
	case c.MissingMin > 0:
		c.Verdict = Broken
		c.Why = fmt.Sprintf("%d pieces are neither in stock nor reserved nor sold", c.MissingMin)
	case c.MissingMax < 0:
		c.Verdict = Broken
		c.Why = fmt.Sprintf("%d pieces were sold, or are still for sale, that never existed", -c.MissingMax)
	case c.MissingMin == 0:
		// As in Stock: every unknown request sold.
		c.Verdict = Holds
		c.Why = fmt.Sprintf("%d pieces = %d remaining + %d sold + %d reserved", initial, remaining, sold+unknown, reserved)
	default:
		c.Verdict = Undecided
		c.Why = fmt.Sprintf("%d pieces may have been sold, and up to %d may be missing", unknown, c.MissingMax)
	}
	return c
}
