package check_test

import (
	"math/rand/v2"
	"testing"

	"oversell/api"
	"oversell/lab/check"
	"oversell/lab/history"
)

// ops returns a history with so many sold, refused and unknown requests, for one piece each.
func ops(sold, refused, unknown int) []history.Op {
	var all []history.Op
	add := func(n int, o history.Outcome) {
		for range n {
			all = append(all, history.Op{Outcome: o, Qty: 1})
		}
	}
	add(sold, history.OK)
	add(refused, history.Refused)
	add(unknown, history.Unknown)
	return all
}

func TestStock(t *testing.T) {
	tests := []struct {
		name               string
		ops                []history.Op
		initial, remaining int
		verdict            api.Verdict
		lost, lostMax      int
		oversold           int
	}{
		// These histories keep the invariant.
		{"nothing happened", nil, 10, 10, api.Holds, 0, 0, 0},
		{"no stock, nothing sold", ops(0, 5, 0), 0, 0, api.Holds, 0, 0, 0},
		{"all sold", ops(10, 0, 0), 10, 0, api.Holds, 0, 0, 0},
		{"sold out", ops(10, 4990, 0), 10, 0, api.Holds, 0, 0, 0},
		{"some sold", ops(3, 2, 0), 10, 7, api.Holds, 0, 0, 0},
		{"all refused", ops(0, 50, 0), 10, 10, api.Holds, 0, 0, 0},
		{"every unknown sold", ops(3, 0, 2), 10, 5, api.Holds, 0, 0, 0},
		{"only unknowns, all sold", ops(0, 0, 10), 10, 0, api.Holds, 0, 0, 0},

		// These histories break the invariant.
		{"one update lost", ops(10, 0, 0), 10, 1, api.Broken, 1, 1, 0},
		{"the tutorial's own run", ops(5000, 0, 0), 5000, 4870, api.Broken, 4870, 4870, 0},
		{"remaining 0 hides an oversell", ops(11, 0, 0), 10, 0, api.Broken, 1, 1, 1},
		{"oversold and lost", ops(12, 0, 0), 10, 4, api.Broken, 6, 6, 2},
		{"count below zero, and sold agrees with taken", ops(12, 0, 0), 10, -2, api.Broken, 0, 0, 2},
		{"count below zero, nothing sold", ops(0, 0, 0), 10, -1, api.Broken, -11, -11, 0},
		{"vanished without a sale", ops(3, 0, 0), 10, 6, api.Broken, -1, -1, 0},
		{"stock grew", ops(0, 0, 0), 10, 11, api.Broken, 1, 1, 0},
		{"sold from nothing", ops(1, 0, 0), 0, 0, api.Broken, 1, 1, 1},

		// Unknown outcomes widen the range of lost updates by exactly their number.
		{"unknown, none of them gone", ops(3, 0, 2), 10, 7, api.Inconclusive, 0, 2, 0},
		{"unknown, one of two gone", ops(3, 0, 2), 10, 6, api.Inconclusive, 0, 1, 0},
		{"certainly lost in spite of unknowns", ops(5, 0, 2), 10, 6, api.Broken, 1, 3, 0},
		{"more vanished than the unknowns explain", ops(3, 0, 2), 10, 4, api.Broken, -1, -1, 0},
		{"certainly oversold in spite of unknowns", ops(11, 0, 5), 10, 0, api.Broken, 1, 6, 1},
		{"perhaps oversold", ops(10, 0, 1), 10, 0, api.Inconclusive, 0, 1, 0},
		{"unknowns took it below zero", ops(9, 0, 2), 10, -1, api.Broken, 0, 0, 0},
		{"everything unknown, nothing gone", ops(0, 0, 10), 10, 10, api.Inconclusive, 0, 10, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := check.Stock(tt.ops, tt.initial, tt.remaining)
			if got.Verdict != tt.verdict || got.Lost() != tt.lost || got.LostMax != tt.lostMax || got.Oversold() != tt.oversold {
				t.Errorf("verdict %s, lost %d to %d, oversold %d; want %s, %d to %d, %d",
					got.Verdict, got.Lost(), got.LostMax, got.Oversold(), tt.verdict, tt.lost, tt.lostMax, tt.oversold)
			}
		})
	}
}

func TestStockCountsPiecesNotRequests(t *testing.T) {
	h := []history.Op{{Outcome: history.OK, Qty: 3}, {Outcome: history.OK, Qty: 2}, {Outcome: history.Unknown, Qty: 4}}
	if got := check.Stock(h, 10, 1); got.Verdict != api.Holds || got.Sold != 5 || got.Unknown != 4 {
		t.Errorf("5 sold, 4 unknown, 9 gone: %+v", got)
	}
	if got := check.Stock(h, 10, 6); got.Verdict != api.Broken || got.Lost() != 1 {
		t.Errorf("5 sold, 4 gone: %+v", got)
	}
}

func TestUndecidable(t *testing.T) {
	got := check.Undecidable(ops(7, 1, 2), 10)
	if got.Verdict != api.Inconclusive || got.Lost() != 0 || got.Sold != 7 || got.Unknown != 2 {
		t.Errorf("no remaining stock known: %+v", got)
	}
}

// TestStockAgainstTheTruth makes histories in which the outcome of every request is known, hides
// some outcomes, and expects that the verdict never contradicts the truth.
func TestStockAgainstTheTruth(t *testing.T) {
	for seed := range uint64(5000) {
		r := rand.New(rand.NewPCG(seed, 1))
		initial := r.IntN(12)
		count, lost := initial, 0
		var h []history.Op
		for range r.IntN(15) {
			op := history.Op{Outcome: history.Refused, Qty: 1 + r.IntN(2)}
			if count >= op.Qty && r.IntN(4) > 0 {
				op.Outcome = history.OK
				if r.IntN(10) == 0 {
					lost += op.Qty // sold, and another write puts the piece back
				} else {
					count -= op.Qty
				}
			}
			if r.IntN(5) == 0 {
				op.Outcome = history.Unknown
			}
			h = append(h, op)
		}
		got := check.Stock(h, initial, count)
		if lost < got.LostMin || lost > got.LostMax {
			t.Fatalf("seed %d: %d truly lost, outside %d to %d", seed, lost, got.LostMin, got.LostMax)
		}
		if got.Verdict == api.Holds && lost > 0 {
			t.Fatalf("seed %d: holds, but %d were lost", seed, lost)
		}
		if got.Verdict == api.Broken && lost == 0 {
			t.Fatalf("seed %d: broken, but no update was lost", seed)
		}
		if got.Unknown == 0 && got.Verdict == api.Inconclusive {
			t.Fatalf("seed %d: inconclusive although every outcome is known", seed)
		}
	}
}
