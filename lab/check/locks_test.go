package check_test

import (
	"slices"
	"testing"
	"time"

	"oversell/api"
	"oversell/lab/check"
	"oversell/lab/history"
)

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
	latch := check.LockModel{Permits: check.AllPermits}
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
		{"a latch of two opens", latch, []check.LockOp{enter("latch", 0, 1, 1, 0), enter("latch", 0, 1, 1, 0), leave("latch", 2, 3, 1), leave("latch", 4, 6, 1), enter("A", 1, 5, all, 0), leave("A", 1, 5, all)}, api.Holds},
		{"a latch of two opens when it was counted down once", latch, []check.LockOp{enter("latch", 0, 1, 1, 0), enter("latch", 0, 1, 1, 0), leave("latch", 2, 3, 1), enter("A", 2, 5, all, 0), leave("A", 2, 5, all), leave("latch", 6, 7, 1)}, api.Broken},
		{"a latch opens when its server has failed", latch, []check.LockOp{enter("latch", 0, 1, 1, 0), expire("latch", 2), enter("A", 2, 5, all, 0), leave("A", 2, 5, all)}, api.Holds},
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

// TestLockActs judges recordings of holders that were paused, or never released the lock.
func TestLockActs(t *testing.T) {
	const s = time.Second
	steps := func(replica, owner string, at ...time.Duration) (all []history.Event) {
		for i, step := range []api.Step{"asked", "granted", "read", "writing", "written", "released"}[:len(at)] {
			all = append(all, history.Event{Replica: replica, Owner: owner, Step: step, At: at[i]})
		}
		return all
	}
	beside := slices.Concat(steps("replica-1", "A", 0, 1, 2), steps("replica-2", "B", 3, 2*s, 2*s+1, 2*s+2, 2*s+3, 2*s+4))
	after := slices.Concat(steps("replica-1", "A", 0, 1, 2), steps("replica-2", "B", 3, 4*s, 4*s+1, 4*s+2, 4*s+3, 4*s+4))
	ends := []history.Event{{Replica: "replica-1", Owner: "A", Step: "written", At: 5*s - 1}, {Replica: "replica-1", Owner: "A", Step: "released", At: 5 * s}}
	late := slices.Concat(beside, ends)
	tests := []struct {
		name   string
		events []history.Event
		lease  time.Duration
		renews bool
		spans  []history.Span
		want   api.Verdict
	}{
		{"within the lease", late, 3 * s, false, nil, api.Broken},
		{"after the lease", slices.Concat(after, ends), 3 * s, false, nil, api.Holds},
		{"after a lease that was renewed", slices.Concat(after, ends), 3 * s, true, nil, api.Broken},
		{"the holder was paused for a lease", slices.Concat(after, ends), 3 * s, true, []history.Span{{Who: "replica-1", From: 3, To: 5 * s}}, api.Holds},
		{"another replica was paused", slices.Concat(after, ends), 3 * s, true, []history.Span{{Who: "replica-2", From: 3, To: 4 * s}}, api.Broken},
		{"the holder was paused for a moment", late, 6 * s, true, []history.Span{{Who: "replica-1", From: 3, To: 4}}, api.Broken},
		{"the server lost the lock", late, 3 * s, true, []history.Span{{Who: "redis-1", From: 1 * s, To: 1 * s}}, api.Holds},
		{"the server lost its data before the grant", late, 3 * s, true, []history.Span{{Who: "redis-1", From: -2, To: -1}}, api.Broken},
		{"a grant that was too late, and was noticed", append(steps("replica-1", "A", 0, 4), steps("replica-2", "B", 1, 2, 3, 5, 6, 7)...), 0, false, nil, api.Holds},
		{"no lease, no fault, and no release", beside, 0, false, nil, api.Holds},
		{"no lease, and no fault", late, 0, false, nil, api.Broken},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			rec := history.Recording{Events: tt.events, Lease: tt.lease, Renews: tt.renews, Spans: tt.spans}
			if got := (check.LockModel{Permits: 1}).Check(check.LockActs(rec)); got.Verdict != tt.want || got.Grants == 0 {
				t.Errorf("%s, %d grants: %s", got.Verdict, got.Grants, got.Why.EN)
			}
		})
	}
}

func TestOvertakings(t *testing.T) {
	event := func(owner string, step api.Step, at time.Duration) history.Event {
		return history.Event{Owner: owner, Step: step, At: at}
	}
	queue := []history.Event{event("A", "asked", 0), event("A", "queued", 1), event("B", "asked", 2), event("B", "queued", 3)}
	fair := append(slices.Clone(queue), event("A", "granted", 4), event("B", "granted", 5))
	unfair := append(slices.Clone(queue), event("B", "granted", 4), event("A", "granted", 5))
	if got := check.Overtakings(history.Recording{Events: fair}); len(got) != 0 {
		t.Errorf("%+v", got)
	}
	if got := check.Overtakings(history.Recording{Events: unfair}); len(got) != 1 || got[0].First.Owner != "A" || got[0].Second.Owner != "B" {
		t.Errorf("%+v", got)
	}
	both := []history.Event{event("A", "asked", 0), event("B", "asked", 1), event("A", "queued", 2), event("B", "granted", 4), event("A", "granted", 5)}
	if got := check.Overtakings(history.Recording{Events: both}); len(got) != 0 {
		t.Errorf("B had asked before A was in the queue: %+v", got)
	}
}
