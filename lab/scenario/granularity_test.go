package scenario

import (
	"net/http"
	"slices"
	"testing"
	"time"

	"oversell/api"
	"oversell/lab/history"
)

func badOrders(t *testing.T, replica api.Client) {
	if err := replica.SetStock(t.Context(), firstProduct, 3); err != nil {
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
		refused(t, replica, path, status)
	}
	if n, err := replica.Count(t.Context(), "none", firstProduct); err != nil || n != 3 {
		t.Errorf("bad requests sold pieces: %d left of 3, %v", n, err)
	}
}

// refused sends a request, and fails the test unless the answer has this status and a reason.
func refused(t *testing.T, to api.Client, path string, status int) {
	t.Helper()
	if a := post(t.Context(), to, path); a.Status != status || a.Outcome == unknown || a.Detail == "" {
		t.Errorf("%s: %+v, want %d", path, a, status)
	}
}

// opsOf returns n operations with this outcome.
func opsOf(n int, outcome history.Outcome, reason string) []history.Op {
	return slices.Repeat([]history.Op{{Qty: 1, Outcome: outcome, Reason: reason}}, n)
}

func TestJudgeFlash(t *testing.T) {
	t.Parallel()
	saleOf := func(won, lost int) flashSale {
		return flashSale{took: time.Second, ops: slices.Concat(
			opsOf(won, history.OK, history.Sold), opsOf(lost, history.Unknown, history.TimedOut),
			opsOf(customers-won-lost, history.Refused, history.SoldOut),
		)}
	}
	for name, c := range map[string]struct {
		guard       string
		sale        flashSale
		left, inRow int
		holds       bool
	}{
		"as many winners as pieces":         {"redis-watch", saleOf(pieces, 0), 0, pieces, true},
		"one too many":                      {"redis-watch", saleOf(pieces+1, 0), 0, pieces, false},
		"one too few":                       {"redis-watch", saleOf(pieces-1, 0), 1, pieces, false},
		"an answer was lost":                {"redis-watch", saleOf(pieces, 1), 0, pieces, false},
		"fewer taken than sold":             {"none", saleOf(pieces, 0), 3, 3, false},
		"copied to the row":                 {"redis-stock", saleOf(pieces, 0), 0, 0, true},
		"not copied to the row":             {"redis-stock", saleOf(pieces, 0), 0, 2, false},
		"the strategy does not use the row": {"redis-watch", saleOf(pieces, 0), 0, 2, true},
	} {
		if r := judgeFlash(Guard{ID: c.guard}, c.sale, c.left, c.inRow); r.Holds() != c.holds {
			t.Errorf("%s: %v", name, r.Broken)
		}
	}
}

func TestMayRetry(t *testing.T) {
	t.Parallel()
	for want, ops := range map[bool][]history.Op{
		true: slices.Concat(opsOf(1, history.Refused, "conflict"), opsOf(1, history.Refused, history.NotAcquired),
			opsOf(1, history.Refused, history.Unreachable)),
		false: slices.Concat(opsOf(1, history.OK, history.Sold), opsOf(1, history.Refused, history.SoldOut),
			opsOf(1, history.Unknown, history.TimedOut)),
	} {
		for _, op := range ops {
			if mayRetry(&op) != want {
				t.Errorf("%d %s may be sent again: %t", op.Outcome, op.Reason, !want)
			}
		}
	}
}

func TestJudgeGranularity(t *testing.T) {
	t.Parallel()
	// sold returns a sale of n pieces of the product with index 3, and of all pieces of each other
	// product.
	sold := func(n int, took time.Duration) *sale {
		s := &sale{took: took}
		for i := range products {
			s.ops[i] = opsOf(perProduct, history.OK, history.Sold)
		}
		s.ops[3] = opsOf(n, history.OK, history.Sold)
		return s
	}
	full := judgeGranularity(Guard{ID: "each"}, sold(perProduct, time.Second))
	if !full.Holds() || full.Figures["per_s"] != products*perProduct {
		t.Errorf("all sold in a second: %+v", full)
	}
	if r := judgeGranularity(Guard{}, sold(perProduct+1, time.Second)); r.Holds() || r.Figures["lost"] != 1 {
		t.Errorf("one piece sold twice: %+v", r)
	}
	if full.compare(sold(perProduct, 4*time.Second)); !full.Holds() || full.Figures["factor"] != 4 {
		t.Errorf("four times as fast: %+v", full)
	}
	slower := judgeGranularity(Guard{ID: "each"}, sold(perProduct, time.Second))
	if slower.compare(sold(perProduct, time.Second/2)); slower.Holds() {
		t.Error("a finer lock that is slower must contradict its claim")
	}
}

// TestUnavailable checks that a scenario whose server is down proves nothing, neither that a guard is safe nor that it is broken.
func TestUnavailable(t *testing.T) {
	t.Parallel()
	answers := []Answer{{Status: 200, Outcome: history.Sold}, {Status: 409, Outcome: history.SoldOut}, {Status: 500, Outcome: unknown}, {Status: 503, Outcome: history.NotAcquired}}
	if err := unavailable(answers); err != nil {
		t.Error(err)
	}
	if err := unavailable(append(answers, Answer{Status: 503, Outcome: history.Unavailable, Detail: "redis is unavailable"})); err == nil {
		t.Error("redis is unavailable, and the scenario counts")
	}
}
