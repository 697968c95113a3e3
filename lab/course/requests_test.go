package course

import (
	"net/http"
	"testing"
	"time"

	"oversell/lab/history"
)

// TestWithoutPrimitives keeps the steps of a sale and of the holders of a semaphore, which get keys of their own, and
// leaves out those of a counter, which nobody holds.
func TestWithoutPrimitives(t *testing.T) {
	t.Parallel()
	kept := withoutPrimitives([]history.Event{
		{Strategy: "none", Step: "read", Key: "stock:1", Owner: "s"},
		{Strategy: "/test/semaphore", Step: "asked", Key: "x", Owner: "a"},
		{Strategy: "/test/semaphore", Step: "granted", Key: "x", Owner: "a"},
		{Strategy: "/test/counter", Step: "asked", Key: "x", Owner: "c"},
	})
	if len(kept) != 3 || kept[0].Key != "stock:1" || kept[2].Key != "a" {
		t.Errorf("%+v", kept)
	}
}

func TestOp(t *testing.T) {
	t.Parallel()
	start := time.Now()
	op := func(answer map[string]any) (history.Op, bool) {
		q := request{called: start.Add(time.Second), done: start.Add(2 * time.Second), answer: answer}
		return q.op(start)
	}
	sold, _ := op(map[string]any{"status": float64(http.StatusOK), "outcome": "sold", "replica": "replica-1", "owner": "replica-1-1", "remaining": 9.0})
	if want := (history.Op{Call: time.Second, Return: 2 * time.Second, Outcome: history.OK, Reason: "sold", Replica: "replica-1", Owner: "replica-1-1", Qty: 1, Remaining: 9, HasRemaining: true}); sold != want {
		t.Errorf("%+v, want %+v", sold, want)
	}
	if refused, answered := op(map[string]any{"status": 503.0, "outcome": "not_acquired"}); !answered || refused.Outcome != history.Refused {
		t.Errorf("%+v", refused)
	}
	for _, answer := range []map[string]any{{"status": 200.0, "count": 5000.0}, {"status": 200.0, "outcome": "locked"}, {"status": 410.0, "outcome": "expired"}, {}} {
		if _, answered := op(answer); answered {
			t.Errorf("%v is no request with an answer of its own", answer)
		}
	}
}
