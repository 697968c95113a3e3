package redislock

import (
	"sync"
	"time"
)

// A release wakes every process that waits, and the one that released is the
// first to ask again: the others ask in vain, each time. So there is a rule. A
// process leaves the lock to a waiter of its own, a few times in a row. Then it
// frees it, and lets as many of the others go first as went first the last time:
// busy processes take turns, and one that wants nothing delays nobody twice.
// Nothing that the lock promises rests on it.
const (
	// run and runTime bound what a process takes in a row. For runTime it also
	// waits for each of the others that go first.
	run     = 8
	runTime = 20 * time.Millisecond
)

// rivals keeps the rule for each channel. The zero value is ready.
type rivals struct {
	mu    sync.Mutex
	turns map[string]*turn
}

// turn is what a process knows of its own turns. The numbers count messages
// heard on the channel.
type turn struct {
	grants int // in the run that is on
	since  time.Time
	ended  uint64 // the run before, our own message included
	again  uint64 // our next run may begin
	first  uint64 // how many went before us the last time; 0: not known
}

// theirs reports whether a lock that seems free is for the others to take.
func (r *rivals) theirs(channel string, heard uint64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	t := r.turns[channel]
	return t != nil && t.grants == 0 && heard < t.again
}

// granted counts a grant.
func (r *rivals) granted(channel string, heard uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.turns == nil {
		r.turns = map[string]*turn{}
	}
	t := r.turns[channel]
	if t == nil {
		t = &turn{}
		r.turns[channel] = t
	}
	if t.grants == 0 {
		t.since = time.Now()
		if heard > t.ended && t.ended > 0 {
			t.first = heard - t.ended
		}
	}
	t.grants++
}

// goOn reports whether one more task of this process may follow at once.
func (r *rivals) goOn(channel string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	t := r.turns[channel]
	return t != nil && t.grants < run && time.Since(t.since) < runTime
}

// told ends the run: others were told, and next says whether a task of ours
// waits. heard is what was heard before; our own message comes next.
func (r *rivals) told(channel string, others uint64, next bool, heard uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	t := r.turns[channel]
	if t == nil {
		return
	}
	if others == 0 || !next {
		delete(r.turns, channel)
		return
	}
	if t.first > 0 {
		others = min(others, t.first)
	}
	t.grants, t.ended, t.again = 0, heard+1, heard+1+others
}
