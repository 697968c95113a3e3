package handlers

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"oversell/api"
	"oversell/locks"
	"oversell/stock"
)

// inserted is a step after the last statement of a transaction and before the commit.
const inserted api.Step = "inserted"

// guard says how a request of a scenario is protected from others.
type guard struct {
	lock    string // id in Config.Lockers of the lock for each key; empty means no lock
	early   bool   // the lock is released before the commit
	once    bool   // a unique key in the database rejects a second order, or a ticket that is sold already
	count   bool   // an UPDATE counts the tickets down, and a later SELECT reads the number
	version bool   // the write requires that the row still has the version that was read
	key     bool   // the request must have the header Idempotency-Key
}

type noLock struct{}

func (noLock) Card() api.Card { return api.Card{} }

func (noLock) Acquire(ctx context.Context, r locks.Request) (*locks.Lock, error) {
	return locks.NewLock(ctx, locks.Grant{Key: r.Key, Owner: r.Owner, Release: func(context.Context) error { return nil }}), nil
}

func (s *Service) locker(id string) (locks.Locker, error) {
	if id == "" {
		return noLock{}, nil
	}
	if locker, ok := s.Lockers[id]; ok {
		return locker, nil
	}
	return nil, fmt.Errorf("this replica does not offer the lock strategy %s: %w", id, stock.ErrUnavailable)
}

// heldLock is the lock of a scenario's request. It reports the request's steps with the lock's key.
type heldLock struct {
	lock     *locks.Lock
	released bool
}

func (h *heldLock) trace(ctx context.Context, step api.Step) {
	locks.Trace(ctx, step, h.lock.Key(), h.lock.Owner(), 0)
}

// guarded runs work under the lock named id. A failed release gives a warning, not an error.
func (s *Service) guarded(ctx context.Context, id string, r locks.Request, work func(*heldLock) error) (warning api.Text, err error) {
	watch := stock.WatchOf(ctx)
	watch.Lock = s.lockEvents(id, new(atomic.Int64))
	defer addSpans(ctx, id, &watch)()
	ctx = stock.WithWatch(ctx, watch)
	locks.Trace(ctx, api.Asked, r.Key, r.Owner, 0)
	locker, err := s.locker(id)
	if err != nil {
		return api.Text{}, err
	}
	lock, err := locker.Acquire(ctx, r)
	if id != "" {
		s.metrics.acquired(id, err)
	}
	if err != nil {
		return api.Text{}, err
	}
	held := &heldLock{lock: lock}
	held.trace(ctx, api.Granted)
	defer func() { warning = held.release(ctx) }()
	return api.Text{}, work(held)
}

// verify returns ErrLost if the lock may have been lost, and nil after an early release.
func (h *heldLock) verify() error {
	if h.released {
		return nil
	}
	if err := h.lock.Verify(); err != nil {
		return fmt.Errorf("%w: %w", stock.ErrCancelled, err)
	}
	return nil
}

// commit verifies the lock again just before the transaction commits, because the transaction may
// have waited for a connection or a row. write must call committing just before the commit.
func (h *heldLock) commit(ctx context.Context, early bool, write func(committing func() error) error) error {
	committing := func() error {
		if err := h.verify(); err != nil {
			return err
		}
		h.trace(ctx, inserted)
		if early {
			// DANGER: the next holder may read now, and would not see the uncommitted write.
			h.release(ctx)
		}
		return nil
	}
	for {
		if err := h.verify(); err != nil {
			return err
		}
		h.trace(ctx, api.Writing)
		err := write(committing)
		// Another transaction held the row for too long. No write happened, so try again.
		if errors.Is(err, stock.ErrConflict) && ctx.Err() == nil {
			continue
		}
		if err == nil {
			h.trace(ctx, api.Written)
		}
		return err
	}
}

func (h *heldLock) release(ctx context.Context) (warning api.Text) {
	if h.released {
		return api.Text{}
	}
	h.released = true
	warning = locks.ReleaseWarning(h.lock.Release(ctx))
	h.trace(ctx, api.Released)
	return warning
}

func (s *Service) forget(ctx context.Context, key string) error {
	var failed []error
	for id, l := range s.Lockers {
		if cleaner, ok := l.(locks.Cleaner); ok {
			if err := cleaner.Clear(ctx, key); err != nil {
				failed = append(failed, fmt.Errorf("%s: %w", id, err))
			}
		}
	}
	return errors.Join(failed...)
}
