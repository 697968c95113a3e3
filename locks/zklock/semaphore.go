package zklock

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"oversell/locks"
)

// semaphore is Curator's InterProcessSemaphoreV2 (tutorial 4.6.5): a lease is an
// ephemeral node, so those of a dead session come back. Who wants one stands in
// a line (in this process, then among all), and only its head looks at the
// leases. A release wakes one waiter, not all.
type semaphore struct {
	recipe
	line locks.Locker
}

func newSemaphore(p, mutex recipe) *semaphore {
	return &semaphore{p, locks.Queue(side{newLine(mutex), writing})}
}

// passing is how long one look may take when others are just getting theirs.
const passing = time.Second

// Acquire takes several permits as ONE node with their number in its name: all
// or none, also when its holder dies. The total is there too: it lasts exactly
// as long as anything is taken.
func (s *semaphore) Acquire(ctx context.Context, r locks.Request, total, qty int) (*locks.Lock, error) {
	if qty < 1 || qty > total {
		return nil, fmt.Errorf("%s: %d of %d permits: %w", r.Key, qty, total, locks.ErrMismatch)
	}
	began := time.Now()
	return again(ctx, r, began, func() (*locks.Lock, error) {
		if err := s.glance(ctx, r, total, qty); err != nil {
			return nil, err
		}
		turn := r
		if turn.Wait = r.Wait - time.Since(began); r.Wait <= 0 {
			turn.Wait = passing
		}
		head, err := s.line.Acquire(ctx, turn)
		if err != nil {
			return nil, err
		}
		defer func() { _ = head.Release(ctx) }()
		return s.take(ctx, r, began, total, qty)
	})
}

// glance refuses without a place in the line whom waiting does not help.
func (s *semaphore) glance(ctx context.Context, r locks.Request, total, qty int) error {
	calls, cancel := s.patience(ctx, r, time.Now())
	defer cancel()
	names, err := s.session.list(calls, s.path(r.Key))
	if errors.Is(err, zk.ErrNoNode) {
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

// take makes our lease and waits until it and those before it are within the
// total. That rule needs no lock: a head that lost its place in the line while
// it was paused takes nobody's permit.
func (s *semaphore) take(ctx context.Context, r locks.Request, began time.Time, total, qty int) (h *locks.Lock, err error) {
	calls, cancel := s.patience(ctx, r, began)
	defer cancel()
	at, err := s.place(calls, s.path(r.Key), fmt.Sprintf("lease-%dof%d-", qty, total))
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			s.quit(ctx, at)
		}
	}()
	for context.Cause(at.alive) == nil {
		asked := time.Now()
		now, err := s.children(calls, at.dir)
		if err != nil {
			return nil, err
		}
		taken, err := takenBefore(now.names, at.name, total)
		if err != nil {
			return nil, mismatch(r, err)
		}
		if taken+qty <= total {
			return s.grant(ctx, r, at, asked), nil
		}
		if err := pause(ctx, at.alive, r, began, now.changed); err != nil {
			return nil, err
		}
	}
	return nil, fmt.Errorf("%w: %w", errNodeGone, context.Cause(at.alive))
}

func mismatch(r locks.Request, err error) error {
	if err != nil {
		err = fmt.Errorf("%s: %w", r.Key, err)
	}
	return err
}

// takenBefore counts the permits of the leases before ours, of all when ours is "".
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
	_, text, ok := strings.Cut(name, "-lease-")
	size, tail, dash := strings.Cut(text, "-")
	qty, total, of := strings.Cut(size, "of")
	seq, err := strconv.ParseInt(tail, 10, 32)
	if !ok || !dash || !of || err != nil {
		return l, false
	}
	l.seq = int32(seq)
	if l.qty, err = strconv.Atoi(qty); err != nil {
		return l, false
	}
	l.total, err = strconv.Atoi(total)
	return l, err == nil
}
