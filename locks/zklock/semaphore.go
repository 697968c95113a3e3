package zklock

import (
	"context"
	"fmt"
	"strings"
	"time"

	"oversell/locks"
)

// semaphore is Curator's InterProcessSemaphoreV2 (tutorial 4.6.5). A lease is an ephemeral node, so
// the leases of a dead session end. Waiters queue for a mutex, first in this process and then among
// replicas. Only the mutex's holder watches the leases, so a release wakes only one waiter.
type semaphore struct {
	recipe
	mutex locks.Locker
}

func newSemaphore(p, mutex recipe) *semaphore {
	return &semaphore{p, locks.Queue(side{&nodeQueue{recipe: mutex}, writing})}
}

// tryWait limits how long a request with a wait of 0 waits for the mutex. The holder of the mutex
// may need only a moment to take its permits.
const tryWait = time.Second

// Acquire takes qty permits with ONE node, whose name has qty and total. So all permits are taken
// and released together, even if the holder dies, and no other total is possible meanwhile.
func (s *semaphore) Acquire(ctx context.Context, r locks.Request, total, qty int) (*locks.Lock, error) {
	if qty < 1 || qty > total {
		return nil, fmt.Errorf("%s: %d of %d permits: %w", r.Key, qty, total, locks.ErrMismatch)
	}
	return retry(ctx, s.session, r, func(began time.Time) (*locks.Lock, error) {
		if err := s.check(ctx, r, total, qty); err != nil {
			return nil, err
		}
		turn := r
		if turn.Wait = r.Wait - time.Since(began); r.Wait <= 0 {
			turn.Wait = tryWait
		}
		head, err := s.mutex.Acquire(ctx, turn)
		if err != nil {
			return nil, err
		}
		defer func() { _ = head.Release(ctx) }()
		return s.take(ctx, r, began, total, qty)
	})
}

// check rejects a hopeless request before it queues: another total, or no wait and too few permits.
func (s *semaphore) check(ctx context.Context, r locks.Request, total, qty int) error {
	calls, cancel := s.session.bound(ctx, r, time.Now())
	defer cancel()
	names, err := s.session.list(calls, s.path(r.Key))
	if isNoNode(err) {
		return nil
	}
	if err != nil {
		return err
	}
	taken, err := takenBefore(names, "", total)
	if err == nil && r.Wait <= 0 && taken+qty > total {
		return locks.NotAcquired(ctx, r.Key, r.Wait)
	}
	return mismatch(r, err)
}

// take creates a lease, and waits until this lease and all earlier leases fit in the total. So a
// request that lost the mutex while its process was paused cannot take another request's permit.
func (s *semaphore) take(ctx context.Context, r locks.Request, began time.Time, total, qty int) (*locks.Lock, error) {
	kind := fmt.Sprintf("lease-%dof%d-", qty, total)
	return inQueue(ctx, &s.recipe, r, began, kind, func(calls context.Context, n *node) (*locks.Lock, error) {
		asked := time.Now()
		now, err := s.children(calls, n.dir)
		if err != nil {
			return nil, err
		}
		taken, err := takenBefore(now.names, n.name, total)
		if err != nil {
			return nil, mismatch(r, err)
		}
		if taken+qty <= total {
			return n.lock(ctx, r, asked, 0, n.release), nil
		}
		_, err = pause(ctx, n.alive, r, began, now.changed)
		return nil, err
	})
}

func mismatch(r locks.Request, err error) error {
	if err != nil {
		err = fmt.Errorf("%s: %w", r.Key, err)
	}
	return err
}

// takenBefore counts the permits of the leases before ours, or of all leases if ours is "".
func takenBefore(names []string, ours string, total int) (taken int, err error) {
	us, there := leaseOf(ours)
	found := !there
	for _, name := range names {
		l, ok := leaseOf(name)
		switch {
		case name == ours:
			found = true
		case !ok, there && l.seq-us.seq > 0: // the sequence wraps
		case l.total != total:
			return 0, fmt.Errorf("%w: %d permits, not %d", locks.ErrMismatch, l.total, total)
		default:
			taken += l.qty
		}
	}
	if !found {
		return 0, errNodeGone
	}
	return taken, nil
}

type lease struct {
	qty, total int
	seq        int32
}

// leaseOf reads _c_<GUID>-lease-<qty>of<total>-<sequence>.
func leaseOf(name string) (l lease, ok bool) {
	_, text, _ := strings.Cut(name, "-lease-")
	_, err := fmt.Sscanf(text, "%dof%d-%d", &l.qty, &l.total, &l.seq)
	return l, err == nil
}
