package redislock

import (
	"context"
	"sync"
	"time"

	"oversell/locks"
)

// A release wakes every process that waits, and the one that released is the
// first to ask again: the others ask in vain, each time. So there is a rule. A
// process with a waiter of its own releases without a message, a few times in a
// row; then it tells all, and holds back until one of them has had the lock.
// Nothing that the lock promises rests on it.
const (
	// run and runTime bound what a process takes in a row.
	run     = 3
	runTime = 20 * time.Millisecond
	// courtesy is how long it then holds back at most, and how long a lock that
	// was released without a message stays so when nobody takes it.
	courtesy = 2 * time.Millisecond
)

// rivals keeps the rule for each channel. The zero value is ready.
type rivals struct {
	mu   sync.Mutex
	runs map[string]*grants
}

// grants is what this process took in a row.
type grants struct {
	count  int
	since  time.Time
	theirs uint64      // hold back until so many messages were heard
	untold *time.Timer // tells the others of a release without a message
}

// granted counts a grant.
func (r *rivals) granted(channel string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.runs == nil {
		r.runs = map[string]*grants{}
	}
	g := r.runs[channel]
	if g == nil {
		g = &grants{since: time.Now()}
		r.runs[channel] = g
	}
	g.count++
	if g.untold != nil {
		g.untold.Stop()
		g.untold = nil
	}
}

// goOn reports whether the next task of this process may follow without a
// message. If none takes the lock after all, tell is called.
func (r *rivals) goOn(channel string, next bool, tell func()) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	g := r.runs[channel]
	if g == nil || !next || g.count >= run || time.Since(g.since) >= runTime {
		return false
	}
	if g.untold != nil {
		g.untold.Stop()
	}
	g.untold = time.AfterFunc(courtesy, func() {
		r.told(channel, false, false, 0)
		tell()
	})
	return true
}

// told ends the run. With others told, and a task of ours that waits, heard is
// what was heard before: our own message comes next, and then one of theirs.
func (r *rivals) told(channel string, others, next bool, heard uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.runs, channel)
	if others && next {
		r.runs[channel] = &grants{since: time.Now(), theirs: heard + 2}
	}
}

// holdBack is how many messages to hear before the first try after a run.
func (r *rivals) holdBack(channel string) (theirs uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if g := r.runs[channel]; g != nil {
		theirs, g.theirs = g.theirs, 0
		g.since = time.Now()
	}
	return theirs
}

// yield lets the rivals have the lock first after a run of ours.
func (l *redisLock) yield(ctx context.Context, r locks.Request, channel string, began time.Time) error {
	theirs := l.rivals.holdBack(channel)
	for end := time.Now().Add(courtesy); theirs > 0 && r.Wait > 0; {
		heard := l.signals.heard(channel)
		if left := time.Until(end); heard < theirs && left > 0 {
			wake, leave := l.signals.listen(channel, heard)
			err := locks.Await(ctx, r, began, left, wake)
			leave()
			if err != nil {
				return err
			}
			continue
		}
		break
	}
	return nil
}
