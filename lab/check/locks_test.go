package check_test

import (
	"testing"
	"time"

	"oversell/api"
	"oversell/lab/check"
)

// acts makes short histories: each act takes one unit of time, unless the test says otherwise.
func enter(owner string, call, back time.Duration, permits int, fence int64) check.LockOp {
	return check.LockOp{Act: check.Enter, Owner: owner, Permits: permits, Fence: fence, Call: call, Return: back}
}

func leave(owner string, call, back time.Duration, permits int) check.LockOp {
	return check.LockOp{Act: check.Leave, Owner: owner, Permits: permits, Call: call, Return: back}
}

func expire(owner string, from time.Duration) check.LockOp {
	return check.LockOp{Act: check.Expire, Owner: owner, Call: from, Return: check.Open}
}

func TestLockModels(t *testing.T) {
	mutex := check.LockModel{Permits: 1}
	reentrant := check.LockModel{Permits: 1, Reentrant: true}
	fenced := check.LockModel{Permits: 1, Fenced: true, Reentrant: true}
	shared := check.LockModel{Permits: check.AllPermits, Reentrant: true}
	semaphore := check.LockModel{Permits: 2}
	const all = check.AllPermits
	tests := []struct {
		name  string
		model check.LockModel
		ops   []check.LockOp
		want  api.Verdict
	}{
		{"one after the other", mutex, []check.LockOp{enter("A", 0, 1, 1, 0), leave("A", 2, 3, 1), enter("B", 1, 4, 1, 0)}, api.Holds},
		{"B beside A", mutex, []check.LockOp{enter("A", 0, 1, 1, 0), enter("B", 1, 4, 1, 0), leave("A", 5, 6, 1)}, api.Broken},
		{"B is granted while A releases", mutex, []check.LockOp{enter("A", 0, 1, 1, 0), leave("A", 2, 5, 1), enter("B", 1, 3, 1, 0)}, api.Holds},
		{"B after the lease of A may have ended", mutex, []check.LockOp{enter("A", 0, 1, 1, 0), expire("A", 3), enter("B", 1, 4, 1, 0), leave("A", 5, 6, 1)}, api.Holds},
		{"B before the lease of A can have ended", mutex, []check.LockOp{enter("A", 0, 1, 1, 0), expire("A", 5), enter("B", 1, 4, 1, 0), leave("A", 6, 7, 1)}, api.Broken},
		{"the late release of A frees the lock of B", mutex, []check.LockOp{enter("A", 0, 1, 1, 0), expire("A", 3), enter("B", 1, 4, 1, 0), leave("A", 5, 6, 1), enter("C", 6, 7, 1, 0), leave("B", 8, 9, 1)}, api.Broken},
		{"A is killed, and its release is open", mutex, []check.LockOp{enter("A", 0, 1, 1, 0), leave("A", 2, check.Open, 1), enter("B", 1, 4, 1, 0)}, api.Holds},
		{"A never releases, and has no lease", mutex, []check.LockOp{enter("A", 0, 1, 1, 0), enter("B", 1, 40, 1, 0)}, api.Broken},
		{"C beside B, long after a quiet time", mutex, []check.LockOp{enter("A", 0, 1, 1, 0), leave("A", 2, 3, 1), enter("B", 10, 11, 1, 0), enter("C", 12, 13, 1, 0), leave("B", 14, 15, 1), leave("C", 16, 17, 1)}, api.Broken},

		{"A enters again", reentrant, []check.LockOp{enter("A", 0, 1, 1, 0), enter("A", 2, 3, 1, 0), leave("A", 4, 5, 1), leave("A", 6, 7, 1), enter("B", 5, 8, 1, 0)}, api.Holds},
		{"A enters a lock again that does not allow it", mutex, []check.LockOp{enter("A", 0, 1, 1, 0), enter("A", 2, 3, 1, 0), leave("A", 4, 5, 1), leave("A", 6, 7, 1)}, api.Broken},
		{"another owner enters as if it were A", reentrant, []check.LockOp{enter("A", 0, 1, 1, 0), enter("A", 2, 3, 1, 0), enter("B", 4, 5, 1, 0), leave("A", 6, 7, 1), leave("A", 8, 9, 1)}, api.Broken},
		{"the inner release of A frees the lock", reentrant, []check.LockOp{enter("A", 0, 1, 1, 0), enter("A", 2, 3, 1, 0), leave("A", 4, 5, 1), enter("B", 6, 7, 1, 0), leave("A", 8, 9, 1)}, api.Broken},

		{"the fence rises", fenced, []check.LockOp{enter("A", 0, 1, 1, 3), leave("A", 2, 3, 1), enter("B", 4, 5, 1, 4), leave("B", 6, 7, 1)}, api.Holds},
		{"the fence falls", fenced, []check.LockOp{enter("A", 0, 1, 1, 3), leave("A", 2, 3, 1), enter("B", 4, 5, 1, 2), leave("B", 6, 7, 1)}, api.Broken},
		{"the fence stays", fenced, []check.LockOp{enter("A", 0, 1, 1, 3), leave("A", 2, 3, 1), enter("B", 4, 5, 1, 3), leave("B", 6, 7, 1)}, api.Broken},
		{"A keeps its fence when it enters again", fenced, []check.LockOp{enter("A", 0, 1, 1, 3), enter("A", 2, 3, 1, 3), leave("A", 4, 5, 1), leave("A", 6, 7, 1)}, api.Holds},

		{"two readers, then a writer", shared, []check.LockOp{enter("A", 0, 1, 1, 0), enter("B", 0, 1, 1, 0), leave("A", 2, 3, 1), leave("B", 2, 4, 1), enter("C", 1, 5, all, 0), leave("C", 6, 7, all)}, api.Holds},
		{"a reader beside a writer", shared, []check.LockOp{enter("A", 0, 1, all, 0), enter("B", 2, 3, 1, 0), leave("A", 4, 5, all), leave("B", 6, 7, 1)}, api.Broken},
		{"a writer beside a reader", shared, []check.LockOp{enter("A", 0, 1, 1, 0), enter("B", 2, 3, all, 0), leave("A", 4, 5, 1), leave("B", 6, 7, all)}, api.Broken},
		{"a writer becomes a reader", shared, []check.LockOp{enter("A", 0, 1, all, 0), enter("A", 2, 3, 1, 0), leave("A", 4, 5, all), enter("B", 5, 6, 1, 0), leave("A", 7, 8, 1), leave("B", 7, 9, 1)}, api.Holds},
		{"a writer enters beside the reader that was a writer", shared, []check.LockOp{enter("A", 0, 1, all, 0), enter("A", 2, 3, 1, 0), leave("A", 4, 5, all), enter("B", 5, 6, all, 0), leave("A", 7, 8, 1), leave("B", 7, 9, all)}, api.Broken},

		{"two permits for two", semaphore, []check.LockOp{enter("A", 0, 1, 1, 0), enter("B", 0, 1, 1, 0), leave("A", 2, 3, 1), enter("C", 2, 4, 1, 0), leave("B", 5, 6, 1), leave("C", 5, 6, 1)}, api.Holds},
		{"three permits of two", semaphore, []check.LockOp{enter("A", 0, 1, 1, 0), enter("B", 0, 1, 1, 0), enter("C", 2, 4, 1, 0), leave("A", 5, 6, 1), leave("B", 5, 6, 1), leave("C", 5, 6, 1)}, api.Broken},
		{"one permit expires, and two are granted", semaphore, []check.LockOp{enter("A", 0, 1, 1, 0), enter("B", 0, 1, 1, 0), expire("A", 3), enter("C", 2, 4, 1, 0), enter("D", 2, 5, 1, 0), leave("B", 6, 7, 1), leave("C", 6, 7, 1), leave("D", 6, 7, 1)}, api.Broken},
		{"one permit expires, and one is granted", semaphore, []check.LockOp{enter("A", 0, 1, 1, 0), enter("B", 0, 1, 1, 0), expire("A", 3), enter("C", 2, 4, 1, 0), leave("B", 6, 7, 1), leave("C", 6, 7, 1)}, api.Holds},
		{"both permits of one request beside another", semaphore, []check.LockOp{enter("A", 0, 1, 1, 0), enter("B", 2, 3, 2, 0), leave("A", 4, 5, 1), leave("B", 4, 5, 2)}, api.Broken},
		{"nothing", mutex, nil, api.Holds},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := tt.model.Check(tt.ops)
			if got.Verdict != tt.want {
				t.Errorf("%s: %s", got.Verdict, got.Why.EN)
			}
			if bad := got.Op >= 0; bad != (tt.want == api.Broken) || bad && tt.ops[got.Op].Act != check.Enter {
				t.Errorf("the first act that fits no order is %d", got.Op)
			}
		})
	}
}

// TestLongHistories judges as many grants as hours of a run have, one wrong grant at their end.
func TestLongHistories(t *testing.T) {
	var ops []check.LockOp
	for i := range time.Duration(5000) {
		ops = append(ops, enter("A", 10*i, 10*i+1, 1, 0), leave("A", 10*i+2, 10*i+4, 1), enter("B", 10*i, 10*i+3, 1, 0), leave("B", 10*i+5, 10*i+6, 1))
	}
	mutex := check.LockModel{Permits: 1}
	if got := mutex.Check(ops); got.Verdict != api.Holds || got.Grants != 10_000 {
		t.Errorf("%s, %d grants: %s", got.Verdict, got.Grants, got.Why.EN)
	}
	ops = append(ops, enter("C", 49_995, 49_996, 1, 0), enter("D", 49_997, 49_998, 1, 0))
	if got := mutex.Check(ops); got.Verdict != api.Broken || ops[got.Op].Owner != "D" {
		t.Errorf("%s, act %d: %s", got.Verdict, got.Op, got.Why.EN)
	}
}
