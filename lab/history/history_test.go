package history_test

import (
	"testing"
	"time"

	"oversell/lab/history"
)

func TestMergeOrdersByCall(t *testing.T) {
	got := history.Merge([][]history.Op{
		{{Client: 1, Call: 1}, {Client: 1, Call: 5}},
		nil,
		{{Client: 2, Call: 1}, {Client: 2, Call: 3}},
	})
	want := []struct {
		client int
		call   time.Duration
	}{{1, 1}, {2, 1}, {2, 3}, {1, 5}}
	if len(got) != len(want) {
		t.Fatalf("merged %d operations, want %d", len(got), len(want))
	}
	for i, w := range want {
		if got[i].Client != w.client || got[i].Call != w.call {
			t.Errorf("operation %d is client %d at %d, want client %d at %d", i, got[i].Client, got[i].Call, w.client, w.call)
		}
	}
}

func TestTakenAddsPieces(t *testing.T) {
	ops := []history.Op{
		{Outcome: history.OK, Qty: 2},
		{Outcome: history.Refused, Qty: 5},
		{Outcome: history.OK, Qty: 1},
		{Outcome: history.Unknown, Qty: 4},
	}
	for outcome, want := range map[history.Outcome]int{history.OK: 3, history.Refused: 5, history.Unknown: 4} {
		if got := history.Taken(ops, outcome); got != want {
			t.Errorf("%v: %d pieces, want %d", outcome, got, want)
		}
	}
}

func TestFailed(t *testing.T) {
	tests := []struct {
		op   history.Op
		want bool
	}{
		{history.Op{Outcome: history.OK, Reason: history.Sold}, false},
		{history.Op{Outcome: history.Refused, Reason: history.SoldOut}, false},
		{history.Op{Outcome: history.Refused, Reason: history.NotAcquired}, true},
		{history.Op{Outcome: history.Refused, Reason: history.Unreachable}, true},
		{history.Op{Outcome: history.Unknown, Reason: history.TimedOut}, true},
		{history.Op{Outcome: history.Unknown, Reason: history.SoldOut}, true}, // contradicts itself
	}
	for _, tt := range tests {
		if got := tt.op.Failed(); got != tt.want {
			t.Errorf("%v %s: failed = %v, want %v", tt.op.Outcome, tt.op.Reason, got, tt.want)
		}
	}
}
