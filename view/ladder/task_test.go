package ladder

import (
	"slices"
	"testing"
	"time"

	"oversell/lab/history"
)

// TestPair pairs the requests of a replica with the records of their clients: by the owner of the answer, and the others
// in the order in which they ended, if there are as many.
func TestPair(t *testing.T) {
	t.Parallel()
	op := func(owner string, call, answered time.Duration) history.Op {
		return history.Op{Replica: "replica-1", Owner: owner, Call: call, Return: answered}
	}
	for name, tt := range map[string]struct {
		ops      []history.Op
		a, b     int // the op of each task, or -1
		stepless []int
	}{
		"by owner, whatever the times say": {ops: []history.Op{op("b", 1, 40), op("a", 2, 30)}, a: 1, b: 0},
		"the rest without an answer":       {ops: []history.Op{op("b", 1, 40), op("", 0, 99)}, a: 1, b: 0},
		"in the order of their ends":       {ops: []history.Op{op("", 1, 30), op("", 2, 40)}, a: 1, b: 0},
		"the owner took no step":           {ops: []history.Op{op("c", 1, 30), op("a", 2, 40)}, a: 1, b: -1, stepless: []int{0}},
		"more than tasks":                  {ops: []history.Op{op("", 1, 30), op("", 2, 40), op("a", 1, 30)}, a: 2, b: -1, stepless: []int{0, 1}},
		"fewer than tasks":                 {ops: []history.Op{op("", 1, 30)}, a: -1, b: -1, stepless: []int{0}},
		"of another replica":               {ops: []history.Op{{Replica: "replica-2", Return: 30}, op("a", 2, 40)}, a: 1, b: -1, stepless: []int{0}},
	} {
		taskOf := func(owner string, last time.Duration) *task {
			return &task{owner: owner, replica: "replica-1", events: []history.Event{{Owner: owner, At: 3}, {Owner: owner, At: last}}}
		}
		a, b := taskOf("a", 35), taskOf("b", 25)
		index := func(of *task) int {
			return slices.IndexFunc(tt.ops, func(op history.Op) bool { return of.op != nil && op == *of.op })
		}
		var stepless []int
		for _, left := range pair([]*task{a, b}, tt.ops) {
			stepless = append(stepless, index(left))
		}
		if index(a) != tt.a || index(b) != tt.b || !slices.Equal(stepless, tt.stepless) {
			t.Errorf("%s: a has op %d, b has op %d, stepless %v; want %d, %d, %v", name, index(a), index(b), stepless, tt.a, tt.b, tt.stepless)
		}
	}
}
