package check_test

import (
	"testing"

	"oversell/lab/check"
	"oversell/lab/history"
)

func TestStockElsewhere(t *testing.T) {
	tests := []struct {
		name                         string
		ops                          []history.Op
		initial, remaining, reserved int
		verdict                      check.Verdict
		missingMin, missingMax       int
	}{
		// Good histories.
		{"nothing happened", nil, 10, 10, 0, check.Holds, 0, 0},
		{"all set aside", nil, 10, 0, 10, check.Holds, 0, 0},
		{"some of each", ops(3, 2, 0), 10, 5, 2, check.Holds, 0, 0},
		{"all sold", ops(10, 5, 0), 10, 0, 0, check.Holds, 0, 0},
		{"every unknown sold", ops(3, 0, 2), 10, 4, 1, check.Holds, 0, 2},

		// Bad histories.
		{"taken in Redis, and nobody has it", ops(3, 0, 0), 10, 4, 2, check.Broken, 1, 1},
		{"missing beyond the unknowns", ops(3, 0, 1), 10, 4, 0, check.Broken, 2, 3},
		{"sold and still set aside", ops(3, 0, 0), 10, 5, 3, check.Broken, -1, -1},
		{"sold beyond doubt in spite of unknowns", ops(6, 0, 3), 10, 5, 0, check.Broken, -4, -1},
		{"more than there was", ops(11, 0, 0), 10, 0, 0, check.Broken, -1, -1},
		{"reserved below zero, books in order", ops(11, 0, 0), 10, 0, -1, check.Broken, 0, 0},
		{"remaining below zero, books in order", ops(10, 0, 0), 10, -2, 2, check.Broken, 0, 0},

		// Unknown outcomes widen it by their number, and by no more.
		{"unknown, none of them gone", ops(3, 0, 2), 10, 5, 2, check.Undecided, -2, 0},
		{"unknown, one of two gone", ops(3, 0, 2), 10, 5, 1, check.Undecided, -1, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := check.StockElsewhere(tt.ops, tt.initial, tt.remaining, tt.reserved)
			if got.Verdict != tt.verdict || got.MissingMin != tt.missingMin || got.MissingMax != tt.missingMax || got.Why == "" {
				t.Errorf("%+v; want %s, %d to %d missing", got, tt.verdict, tt.missingMin, tt.missingMax)
			}
		})
	}
}

// With no stock elsewhere, conservation and reconciliation agree.
func TestStockElsewhereAgreesWithStock(t *testing.T) {
	for sold := range 6 {
		for unknown := range 4 {
			for remaining := -2; remaining < 8; remaining++ {
				h := ops(sold, 1, unknown)
				i1, i5 := check.Stock(h, 5, remaining), check.StockElsewhere(h, 5, remaining, 0)
				if i5.MissingMax != -i1.LostMin || i5.MissingMin != -i1.LostMax {
					t.Fatalf("%d sold, %d unknown, %d left: %+v and %+v", sold, unknown, remaining, i1, i5)
				}
				if remaining <= 5 && i1.Verdict != i5.Verdict {
					t.Fatalf("%d sold, %d unknown, %d left: I1 %s, I5 %s", sold, unknown, remaining, i1.Verdict, i5.Verdict)
				}
			}
		}
	}
}
