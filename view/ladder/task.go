package ladder

import (
	"cmp"
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

// sameMoment is the tolerated difference between the clocks of a replica and of the lab.
const sameMoment = 5 * time.Millisecond

// pair gives each task the op of its request, the client's record. An op does not name the lock's
// owner, so pair looks at the ops of the replica that were open at the task's first step. It takes
// the op that was sent closest to this step. Each op that is left becomes a task without steps.
func pair(tasks []*task, ops []history.Op) (stepless []*task) {
	taken := make([]bool, len(ops))
	for _, t := range tasks {
		best := -1
		for i := range ops {
			if taken[i] || !t.mayBe(ops[i]) {
				continue
			}
			if best < 0 || (t.began()-ops[i].Call).Abs() < (t.began()-ops[best].Call).Abs() {
				best = i
			}
		}
		if best >= 0 {
			t.op, taken[best] = &ops[best], true
		}
	}
	for i := range ops {
		if !taken[i] {
			stepless = append(stepless, &task{replica: ops[i].Replica, op: &ops[i]})
		}
	}
	return stepless
}

func (t *task) mayBe(op history.Op) bool {
	if op.Replica != t.replica || op.Call > t.began()+sameMoment || op.Return < t.began() {
		return false
	}
	// Only a request whose client disconnected may take steps after the end that the client recorded.
	last := t.events[len(t.events)-1].At
	return op.Outcome == history.Unknown || op.Return >= last-sameMoment
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
