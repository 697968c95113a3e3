package locks

import (
	"context"
	"time"
)

// A process passes a lock on to so many holders, and for so long. Then it releases the lock, for other processes.
const (
	runHolders = 32
	runTime    = 20 * time.Millisecond
)

// run is what a process has had of a lock without a release between its holders.
type run struct {
	began time.Time
	left  int           // number of holders that may still follow
	lease time.Duration // of its requests
	next  Grant         // for the next request of this process
}

// acquire takes the lock that the last holder in this process has passed on, or acquires it from the backend.
func (q *queue) acquire(ctx context.Context, own string, r Request) (h *Lock, err error) {
	last, passed := q.take(own)
	if passed {
		h = last.inherit(ctx, r)
	}
	if h == nil {
		if h, err = q.turns.AsFirst(ctx, own, r, q.Locker.Acquire); err != nil {
			return nil, err
		}
		last = run{began: time.Now(), left: min(max(8, q.turns.Waiting(own)/4), runHolders), lease: r.Lease}
	}
	if h.grant.PassOn == nil {
		return h, nil
	}
	release := h.grant.Release
	h.grant.Release = func(ctx context.Context) error {
		if q.turns.Waiting(own) == 0 || last.left == 0 || time.Since(last.began) > runTime {
			return release(ctx)
		}
		next, err := h.grant.PassOn(ctx)
		if err == nil {
			last.left, last.next = last.left-1, next
			q.put(own, last)
		}
		return err
	}
	return h, nil
}

// inherit returns the lock that was passed on. It returns nil, and releases the lock, if it does not fit the request.
func (last run) inherit(ctx context.Context, r Request) *Lock {
	g := last.next
	g.Owner, g.NoRenew = r.Owner, r.NoRenew
	h := NewLock(ctx, g)
	if last.lease == r.Lease && h.Verify() == nil {
		return h
	}
	_ = h.Release(ctx)
	return nil
}

func (q *queue) put(own string, r run) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.passed[own] = r
}

func (q *queue) take(own string) (r run, passed bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	r, passed = q.passed[own]
	delete(q.passed, own)
	return r, passed
}

// releaseUnclaimed releases a lock that was passed on, if its next holder has given up.
func (q *queue) releaseUnclaimed(own string) {
	if last, passed := q.take(own); passed {
		_ = NewLock(context.Background(), last.next).Release(context.Background())
	}
}
