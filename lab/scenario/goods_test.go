package scenario

import (
	"net/http"
	"slices"
	"testing"
	"time"

	"oversell/api"
	"oversell/lab/history"
)

func badGoods(t *testing.T, at api.Client) {
	if err := at.SetStock(t.Context(), firstGoods, 3); err != nil {
		t.Fatal(err)
	}
	for path, status := range map[string]int{
		"/goods/999/orders":                       http.StatusNotFound,
		"/goods/999/orders?grain=all":             http.StatusNotFound,
		"/goods/0/orders":                         http.StatusBadRequest,
		"/goods/101/orders?grain=fine":            http.StatusBadRequest,
		"/goods/101/orders?grain=":                http.StatusBadRequest,
		"/goods/101/orders?hold=1h":               http.StatusBadRequest,
		"/goods/101/orders?qty=1":                 http.StatusBadRequest,
		"/goods/101/orders?grain=all&grain=order": http.StatusBadRequest,
	} {
		refused(t, at, path, status)
	}
	if n, err := at.Count(t.Context(), "none", firstGoods); err != nil || n != 3 {
		t.Errorf("bad requests sold goods: %d left of 3, %v", n, err)
	}
}

// refused asks for what must be refused, with a reason.
func refused(t *testing.T, at api.Client, path string, status int) {
	t.Helper()
	if a := post(t.Context(), at, path); a.Status != status || a.Outcome == unknown || a.Detail == "" {
		t.Errorf("%s: %+v, want %d", path, a, status)
	}
}

// as is n requests that ended so.
func as(n int, outcome history.Outcome, reason string) []history.Op {
	return slices.Repeat([]history.Op{{Qty: 1, Outcome: outcome, Reason: reason}}, n)
}

func TestJudgeFlash(t *testing.T) {
	t.Parallel()
	crowd := func(won, lost int) rush {
		return rush{took: time.Second, ops: slices.Concat(
			as(won, history.OK, history.Sold), as(lost, history.Unknown, history.TimedOut),
			as(customers-won-lost, history.Refused, history.SoldOut),
		)}
	}
	for name, c := range map[string]struct {
		guard     string
		rush      rush
		left, row int
		holds     bool
	}{
		"as many as there are":       {"redis-watch", crowd(pieces, 0), 0, pieces, true},
		"one too many":               {"redis-watch", crowd(pieces+1, 0), 0, pieces, false},
		"one too few":                {"redis-watch", crowd(pieces-1, 0), 1, pieces, false},
		"one lost the answer":        {"redis-watch", crowd(pieces, 1), 0, pieces, false},
		"the count is behind":        {"none", crowd(pieces, 0), 3, 3, false},
		"carried to the row":         {"redis-stock", crowd(pieces, 0), 0, 0, true},
		"not carried to the row":     {"redis-stock", crowd(pieces, 0), 0, 2, false},
		"nobody carries to this row": {"redis-watch", crowd(pieces, 0), 0, 2, true},
	} {
		if r := judgeFlash(Guard{ID: c.guard}, c.rush, c.left, c.row); r.Holds() != c.holds {
			t.Errorf("%s: %v", name, r.Broken)
		}
	}
}

// Sold out is an answer; only who was sold nothing, and may be sold something, comes again.
func TestTryAgain(t *testing.T) {
	t.Parallel()
	for want, ops := range map[bool][]history.Op{
		true: slices.Concat(as(1, history.Refused, "conflict"), as(1, history.Refused, history.NotAcquired),
			as(1, history.Refused, history.Unreachable)),
		false: slices.Concat(as(1, history.OK, history.Sold), as(1, history.Refused, history.SoldOut),
			as(1, history.Unknown, history.TimedOut)),
	} {
		for _, op := range ops {
			if tryAgain(&op) != want {
				t.Errorf("%s %s comes again: %t", op.Outcome, op.Reason, !want)
			}
		}
	}
}

func TestJudgeGrain(t *testing.T) {
	t.Parallel()
	// One product is sold this often, the nine others as often as there are pieces.
	sold := func(n int, took time.Duration) *market {
		m := &market{took: took}
		for i := range goods {
			m.ops[i] = as(shelf, history.OK, history.Sold)
		}
		m.ops[3] = as(n, history.OK, history.Sold)
		return m
	}
	full := judgeGrain(Guard{ID: "each"}, sold(shelf, time.Second))
	if !full.Holds() || full.Figures["per_s"] != goods*shelf {
		t.Errorf("all sold in a second: %+v", full)
	}
	if r := judgeGrain(Guard{}, sold(shelf+1, time.Second)); r.Holds() || r.Figures["lost"] != 1 {
		t.Errorf("one piece sold twice: %+v", r)
	}
	if full.compare(sold(shelf, 4*time.Second)); !full.Holds() || full.Figures["factor"] != 4 {
		t.Errorf("four times as fast: %+v", full)
	}
	slower := judgeGrain(Guard{ID: "each"}, sold(shelf, time.Second))
	if slower.compare(sold(shelf, time.Second/2)); slower.Holds() {
		t.Error("a finer lock that is slower is not what it claims")
	}
}
