package ladder

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"oversell/lab/history"
)

// task is one request, with the records of its client, of its replica, or of both.
type task struct {
	name    string
	owner   string // empty if no step was recorded
	replica string
	events  []history.Event
	op      *history.Op
	waits   []stretch
	holds   []stretch
}

type stretch struct {
	from, to time.Duration
	ragged   bool // its end was not recorded

	lapse time.Duration // of a hold: the end of the lease, or 0
	lost  bool          // the lock ended before its lease, by a fault
}

func (t *task) began() time.Duration {
	if len(t.events) > 0 {
		return t.events[0].At
	}
	return t.op.Call
}

// lastStep returns the time of the last step, or 0.
func (t *task) lastStep() time.Duration {
	if len(t.events) == 0 {
		return 0
	}
	return t.events[len(t.events)-1].At
}

func tasksOf(rec history.Recording, end time.Duration) []*task {
	var tasks []*task
	byOwner := map[[2]string]*task{}
	for _, e := range rec.Events {
		id := [2]string{e.Owner, e.Replica}
		t := byOwner[id]
		if t == nil {
			t = &task{owner: e.Owner, replica: e.Replica}
			byOwner[id] = t
			tasks = append(tasks, t)
		}
		t.events = append(t.events, e)
	}
	tasks = append(tasks, pair(tasks, rec.Ops)...)
	slices.SortStableFunc(tasks, func(a, b *task) int { return cmp.Compare(a.began(), b.began()) })
	for i, t := range tasks {
		t.name = letters(i)
		t.live(func(since time.Duration) time.Duration { return silenced(rec.Spans, t.replica, since, end) })
	}
	return tasks
}

// pair gives each task the op of its request, the client's record. Each op that is left becomes a task without steps.
func pair(tasks []*task, ops []history.Op) (stepless []*task) {
	byOwner, nameless := map[string]*task{}, map[string][]*history.Op{} // these by replica
	for _, t := range tasks {
		byOwner[t.owner] = t
	}
	for i := range ops {
		op := &ops[i]
		t := byOwner[op.Owner]
		switch {
		case op.Owner == "":
			nameless[op.Replica] = append(nameless[op.Replica], op)
		case t == nil:
			stepless = append(stepless, &task{replica: op.Replica, op: op})
		default:
			t.op = op
		}
	}
	for _, replica := range slices.Sorted(maps.Keys(nameless)) {
		stepless = append(stepless, pairNameless(tasks, replica, nameless[replica])...)
	}
	return stepless
}

// pairNameless pairs the ops that name no owner: those without an answer, and all in recordings of earlier versions. They
// are those of the other tasks of the replica if there are as many, in the order in which they ended.
func pairNameless(tasks []*task, replica string, ops []*history.Op) (stepless []*task) {
	rest := slices.DeleteFunc(slices.Clone(tasks), func(t *task) bool { return t.replica != replica || t.op != nil })
	if len(rest) != len(ops) {
		for _, op := range ops {
			stepless = append(stepless, &task{replica: replica, op: op})
		}
		return stepless
	}
	slices.SortStableFunc(rest, func(a, b *task) int { return cmp.Compare(a.lastStep(), b.lastStep()) })
	slices.SortStableFunc(ops, func(a, b *history.Op) int { return cmp.Compare(a.Return, b.Return) })
	for i, t := range rest {
		t.op = ops[i]
	}
	return nil
}

// live sets the waits and holds from the steps. Nested grants of one owner are one hold.
func (t *task) live(silenced func(since time.Duration) time.Duration) {
	waiting, held := -1, 0
	for _, e := range t.events {
		switch e.Step {
		case "asked":
			waiting = len(t.waits)
			t.waits = append(t.waits, stretch{from: e.At, ragged: true})
		case "read", "writing", "written":
			if waiting >= 0 { // without a lock there is nothing to wait for
				t.waits, waiting = t.waits[:waiting], -1
			}
		case "granted":
			if waiting >= 0 {
				t.waits[waiting].to, t.waits[waiting].ragged = e.At, false
				waiting = -1
			}
			if held++; held == 1 {
				t.holds = append(t.holds, stretch{from: e.At, ragged: true})
			}
		case "released":
			if held == 0 {
				continue
			}
			if held--; held == 0 {
				t.holds[len(t.holds)-1].to, t.holds[len(t.holds)-1].ragged = e.At, false
			}
		}
	}
	if waiting >= 0 { // it ends at the answer, or when the replica is killed before
		wait := &t.waits[waiting]
		if wait.to = silenced(wait.from); t.op != nil && t.op.Return <= wait.to {
			wait.to, wait.ragged = t.op.Return, false
		}
	}
	if held > 0 {
		last := &t.holds[len(t.holds)-1]
		last.to = silenced(last.from)
	}
}

// silenced returns when the replica was first killed after since, or end if it was not killed.
func silenced(spans []history.Span, replica string, since, end time.Duration) time.Duration {
	for _, s := range spans {
		if s.Who == replica && s.Kind() == history.Killed && s.From >= since {
			end = min(end, s.From)
		}
	}
	return end
}

// mostTelling returns at most mostTasks tasks, preferably those that held the lock. If all held it, such as permits of
// a semaphore, it returns up to mostHolders: without some of them, the picture shows smaller waves than there were.
func mostTelling(tasks []*task) []*task {
	const mostHolders = 10
	waited := slices.ContainsFunc(tasks, func(t *task) bool { return len(t.holds) == 0 })
	if len(tasks) <= mostTasks || len(tasks) <= mostHolders && !waited {
		return tasks
	}
	chosen := slices.Clone(tasks)
	slices.SortStableFunc(chosen, func(a, b *task) int { return cmp.Compare(min(1, len(b.holds)), min(1, len(a.holds))) })
	chosen = chosen[:mostTasks]
	slices.SortStableFunc(chosen, func(a, b *task) int { return cmp.Compare(a.began(), b.began()) })
	return chosen
}

// letters returns the name of the task with index i: A, B, ... Z, AA, AB, as in spreadsheets.
func letters(i int) string {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	if i < len(alphabet) {
		return alphabet[i : i+1]
	}
	return letters(i/len(alphabet)-1) + letters(i%len(alphabet))
}

func salesOf(ops []history.Op) []sale {
	sold := slices.DeleteFunc(slices.Clone(ops), func(op history.Op) bool { return op.Outcome != history.OK || op.Qty == 0 })
	slices.SortStableFunc(sold, func(a, b history.Op) int { return cmp.Compare(a.Return, b.Return) })
	sales := make([]sale, len(sold))
	pieces := 0
	for i := range sold {
		pieces += sold[i].Qty
		sales[i] = sale{sold[i].Return, pieces}
	}
	return sales
}

// takenBy returns the pieces taken after each write, from the stock that the answers name.
func takenBy(tasks []*task, stock int) (taken []sale) {
	for _, t := range tasks {
		if t.op == nil || !t.op.HasRemaining {
			continue
		}
		for _, e := range t.events {
			if e.Step == "written" {
				taken = append(taken, sale{e.At, stock - t.op.Remaining})
			}
		}
	}
	slices.SortStableFunc(taken, func(a, b sale) int { return cmp.Compare(a.at, b.at) })
	return taken
}

func piecesAt(steps []sale, at time.Duration) (pieces int) {
	for _, s := range steps {
		if s.at <= at {
			pieces = s.pieces
		}
	}
	return pieces
}
