package check_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"oversell/api"
	"oversell/lab/check"
	"oversell/lab/history"
)

// sale, read, soldOut and unknown each return a request. Times are in milliseconds.
func sale(from, to, left int) history.Op {
	return history.Op{Client: 1, Qty: 1, Call: time.Duration(from) * ms, Return: time.Duration(to) * ms, Outcome: history.OK, Remaining: left, HasRemaining: true}
}

func read(from, to, left int) history.Op {
	op := sale(from, to, left)
	op.Qty = 0
	return op
}

func soldOut(from, to int) history.Op {
	op := sale(from, to, 0)
	op.Outcome, op.Reason, op.HasRemaining = history.Refused, history.SoldOut, false
	return op
}

func unknown(from, to int) history.Op {
	op := sale(from, to, 0)
	op.Outcome, op.Reason, op.HasRemaining = history.Unknown, history.TimedOut, false
	return op
}

// pieces sets the quantity. withoutRemaining removes the remaining stock from the answer.
func pieces(n int, op history.Op) history.Op { op.Qty = n; return op }

func withoutRemaining(op history.Op) history.Op { op.HasRemaining = false; return op }

func TestLinear(t *testing.T) {
	refused := unknown(3, 4)
	refused.Outcome, refused.Reason = history.Refused, history.NotAcquired
	tests := []struct {
		name    string
		initial int
		ops     []history.Op
		op      int // index of the first request that fits no order, or -1
	}{
		// These histories are linearizable.
		{"nothing happened", 3, nil, -1},
		{"one after the other", 3, []history.Op{sale(1, 2, 2), sale(3, 4, 1), sale(5, 6, 0), soldOut(7, 8)}, -1},
		{"at once, answered the other way round", 3, []history.Op{sale(1, 9, 0), sale(2, 8, 1), sale(3, 7, 2)}, -1},
		{"touching is at once", 3, []history.Op{sale(1, 5, 1), sale(5, 9, 2)}, -1},
		{"reads see either side of a sale", 3, []history.Op{sale(1, 9, 2), read(2, 3, 3), read(4, 5, 2)}, -1},
		{"sold out before the seller knows", 1, []history.Op{sale(1, 9, 0), soldOut(2, 3)}, -1},
		{"of two sizes", 5, []history.Op{pieces(2, sale(1, 2, 3)), pieces(4, soldOut(3, 4)), pieces(3, sale(5, 6, 0))}, -1},
		{"no answer has the remaining stock", 2, []history.Op{withoutRemaining(sale(1, 2, 0)), withoutRemaining(sale(3, 4, 0)), soldOut(5, 6)}, -1},
		{"a lock not acquired says nothing", 2, []history.Op{sale(1, 2, 1), refused, sale(5, 6, 0)}, -1},
		{"unknown, and it happened", 3, []history.Op{unknown(1, 2), sale(3, 4, 1)}, -1},
		{"unknown, and it never happened", 3, []history.Op{unknown(1, 2), sale(3, 4, 2)}, -1},
		{"unknown, and it happened long after its client was gone", 3, []history.Op{unknown(1, 2), sale(3, 4, 2), sale(5, 6, 0)}, -1},
		{"one of two unknowns happened", 3, []history.Op{unknown(1, 2), unknown(1, 2), sale(3, 4, 1), read(5, 6, 1)}, -1},
		{"unknowns of two sizes, the second happened", 5, []history.Op{unknown(1, 2), pieces(3, unknown(1, 2)), read(3, 4, 2)}, -1},
		{"an unknown read", 5, []history.Op{pieces(0, unknown(1, 2)), unknown(1, 2), sale(3, 4, 3)}, -1},
		{"an unknown too large to have happened", 2, []history.Op{pieces(3, unknown(1, 2)), sale(3, 4, 1)}, -1},

		// These histories are not linearizable.
		{"two left the same", 3, []history.Op{sale(1, 9, 2), sale(2, 8, 2)}, 0},
		{"two left the same, a long time apart", 3, []history.Op{sale(1, 2, 2), sale(3, 4, 1), sale(5, 6, 1), sale(7, 8, 0)}, 2},
		{"against the clock", 3, []history.Op{sale(1, 2, 1), sale(3, 4, 2)}, 0},
		{"a stale read", 3, []history.Op{sale(1, 2, 2), read(3, 4, 3)}, 1},
		{"two reads that go back", 3, []history.Op{sale(1, 9, 2), read(2, 3, 2), read(4, 5, 3)}, 2},
		{"a piece vanished", 3, []history.Op{sale(1, 2, 2), read(3, 4, 1)}, 1},
		{"sold out with stock left", 3, []history.Op{sale(1, 2, 2), soldOut(3, 4)}, 1},
		{"sold out, and sold again", 1, []history.Op{soldOut(1, 2), sale(3, 4, 0)}, 0},
		{"more than there was", 2, []history.Op{withoutRemaining(sale(1, 2, 0)), withoutRemaining(sale(3, 4, 0)), withoutRemaining(sale(5, 6, 0))}, 2},
		{"below zero, and says so", 1, []history.Op{sale(1, 2, 0), sale(3, 4, -1)}, 1},
		{"more than one unknown can explain", 3, []history.Op{unknown(1, 2), sale(3, 4, 0)}, 1},
		{"an unknown that came later explains nothing", 3, []history.Op{sale(3, 4, 1), unknown(5, 6)}, 0},
		{"an unknown happens once", 4, []history.Op{unknown(1, 2), sale(3, 4, 2), sale(5, 6, 0)}, 2},
		{"the wrong size", 5, []history.Op{pieces(3, unknown(1, 2)), read(3, 4, 3)}, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := check.Linear(tt.ops, tt.initial)
			want := api.Holds
			if tt.op >= 0 {
				want = api.Broken
			}
			if got.Verdict != want || got.Op != tt.op || got.Why.ZH == "" {
				t.Errorf("%s at request %d, want %s at %d: %s", got.Verdict, got.Op, want, tt.op, got.Why)
			}
		})
	}
}

func TestLinearSaysWhy(t *testing.T) {
	tests := []struct {
		ops  []history.Op
		want string
	}{
		{[]history.Op{sale(1, 2, 1)}, "Request 0 of client 1 sold 1 and left 1, answered at 2ms: no order of the sales until then explains this answer."},
		{[]history.Op{read(1, 2, 1)}, "Request 0 of client 1 read 1, answered at 2ms: no order of the sales until then explains this answer."},
		{[]history.Op{soldOut(1, 2)}, "Request 0 of client 1 was sold out for 1, answered at 2ms: no order of the sales until then explains this answer."},
		{[]history.Op{withoutRemaining(pieces(4, sale(1, 2, 0)))}, "Request 0 of client 1 sold 4, answered at 2ms: no order of the sales until then explains this answer."},
		{[]history.Op{sale(1, 2, 2)}, "One order of the sales explains all answers (1)."},
		{[]history.Op{unknown(1, 2)}, "There was no answer to judge."},
	}
	for _, tt := range tests {
		if got := check.Linear(tt.ops, 3); got.Why.EN != tt.want {
			t.Errorf("%q, want %q", got.Why, tt.want)
		}
	}
}

// honest returns a correct history with random times. Each request takes effect between its call
// and its answer. A sixth of the requests gets no answer, and half of these never take effect. Size
// 0 is a read.
func honest(r *rand.Rand, requests, initial, overlap int, sizes ...int) []history.Op {
	count := initial
	var all []history.Op
	for i := range requests {
		moment := 1000 + 10*i // the requests take effect in this order
		op := sale(moment-r.IntN(10*overlap), moment+1+r.IntN(10*overlap), 0)
		op.Qty = sizes[r.IntN(len(sizes))]
		lost := r.IntN(6) == 0
		switch {
		case lost && r.IntN(2) == 0: // the request is never carried out
		case count >= op.Qty:
			count -= op.Qty
			op.Remaining = count
		default:
			op.Outcome, op.Reason, op.HasRemaining = history.Refused, history.SoldOut, false
		}
		if lost {
			op.Outcome, op.HasRemaining = history.Unknown, false
		}
		all = append(all, op)
	}
	return history.Merge([][]history.Op{all})
}

func TestLinearTrustsAnHonestShop(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 2))
		if got := check.Linear(honest(r, 40, 30, 5, 0, 1, 2), 30); got.Verdict != api.Holds {
			t.Fatalf("seed %d: %+v", seed, got)
		}
	}
}

// TestLinearAgainstAllOrders compares the verdict with the result of trying every order. Its small
// histories are correct, or have one changed answer.
func TestLinearAgainstAllOrders(t *testing.T) {
	verdicts := map[api.Verdict]int{}
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 3))
		h := honest(r, 1+r.IntN(6), 5, 3, 0, 1, 2)
		if liar := &h[r.IntN(len(h))]; r.IntN(2) == 0 {
			liar.Remaining += 1 - 2*r.IntN(2)
		}
		want := api.Broken
		if anyOrder(h, make([]bool, len(h)), 5) {
			want = api.Holds
		}
		if got := check.Linear(h, 5); got.Verdict != want {
			t.Fatalf("seed %d: %+v, want %s of %+v", seed, got, want, h)
		}
		verdicts[want]++
	}
	if verdicts[api.Holds] < 500 || verdicts[api.Broken] < 500 {
		t.Errorf("seen too little of either: %v", verdicts)
	}
}

// anyOrder reports whether the requests that are not done fit an order that explains their answers,
// from a stock of count.
func anyOrder(h []history.Op, done []bool, count int) bool {
	open := false
	for i, op := range h {
		if done[i] {
			continue
		}
		answered := op.Outcome != history.Unknown
		open = open || answered
		if mustWait(h, done, i) {
			continue
		}
		left, fits := count-op.Qty, count >= op.Qty
		if op.Outcome == history.Refused {
			left, fits = count, !fits
		} else if op.HasRemaining {
			fits = fits && left == op.Remaining
		}
		if !fits {
			continue
		}
		done[i] = true
		ok := anyOrder(h, done, left)
		done[i] = false
		if ok {
			return true
		}
	}
	return !open // the remaining requests are unknown, and may never take effect
}

// mustWait reports whether a request that is not in the order yet ended before h[i] began.
func mustWait(h []history.Op, done []bool, i int) bool {
	for j, other := range h {
		if !done[j] && other.Outcome != history.Unknown && other.Return < h[i].Call {
			return true
		}
	}
	return false
}

// concurrent returns the history of n concurrent clients. Each client sends one request per round.
func concurrent(n, rounds int) []history.Op {
	var all []history.Op
	for round := range rounds {
		for c := range n {
			all = append(all, sale(1000*round, 1000*round+999-c, n*rounds-1-n*round-c))
		}
	}
	return all
}

// Runs are large, and a fault leaves many requests without an answer. Linear must give a verdict
// nevertheless.
func TestLinearDecidesLargeRuns(t *testing.T) {
	h := concurrent(100, 30)
	for i := range 60 { // unknown requests that never took effect
		h = append(h, unknown(10*i, 10*i+5))
	}
	if got := check.Linear(h, 3000); got.Verdict != api.Holds || got.Ops != 3000 {
		t.Errorf("%+v", got)
	}
	h[2500].Remaining++
	if got := check.Linear(h, 3000); got.Verdict != api.Broken || got.Op < 2500 || got.Op >= 2600 {
		t.Errorf("%+v", got)
	}
	for seed := range uint64(10) {
		r := rand.New(rand.NewPCG(seed, 4))
		h := honest(r, 2000, 1500, 50, 1, 1, 1, 0)
		if got := check.Linear(h, 1500); got.Verdict != api.Holds {
			t.Fatalf("seed %d: %+v", seed, got)
		}
		last := h[len(h)-1].Return + time.Hour
		h = append(h, sale(int(last/ms), int(last/ms)+1, 1400))
		if got := check.Linear(h, 1500); got.Verdict != api.Broken || got.Op != len(h)-1 {
			t.Fatalf("seed %d: 1400 left when all was sold: %+v", seed, got)
		}
	}
}

// A hundred concurrent answers "sold out" fit in any order, so they must not lengthen the search.
func TestLinearWithManyRefusals(t *testing.T) {
	h := []history.Op{sale(1, 2, 0)}
	for i := range 100 {
		h = append(h, soldOut(3+i, 200+i))
	}
	h = append(h, read(400, 401, 5))
	if got := check.Linear(h, 1); got.Verdict != api.Broken || got.Op != len(h)-1 {
		t.Errorf("%+v", got)
	}
}

// Forty sales that do not report the remaining stock can be ordered in 40! ways. No order explains
// the read after the sales. Linear cannot try all orders, so it must return Inconclusive.
func TestLinearGivesUp(t *testing.T) {
	var h []history.Op
	for i := range 40 {
		h = append(h, withoutRemaining(pieces(1+i%7, sale(1, 2, 0))))
	}
	h = append(h, read(3, 4, 1))
	first := check.Linear(h, 1000)
	if first.Verdict != api.Inconclusive || first.Op != -1 {
		t.Errorf("%+v", first)
	}
	if again := check.Linear(h, 1000); again != first {
		t.Errorf("first %+v, then %+v", first, again)
	}
}
