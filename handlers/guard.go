package handlers

import (
	"context"
	"errors"
	"fmt"
	"time"

	"oversell/api"
	"oversell/locks"
	"oversell/stock"
)

// task is one request and the parameters of its lock. Its steps are traced under
// the key, whatever the guard.
type task struct {
	key, owner  string
	wait, lease time.Duration
}

func (t task) trace(ctx context.Context, step api.Step) {
	locks.Trace(ctx, step, t.key, t.owner, 0)
}

// heldLock is a guard's lock while one request holds it; where the guard has none, it
// shields from nothing.
type heldLock struct {
	task
	hold *locks.Lock
	gone bool // given back
}

// inserted is the step between the last statement of a transaction and its commit.
const inserted api.Step = "inserted"

// acquireGuard takes the lock of that name; empty is no lock. lower it on every way out.
func (s *Service) acquireGuard(ctx context.Context, lock string, t task) (*heldLock, error) {
	t.trace(ctx, api.Asked)
	if lock == "" {
		t.trace(ctx, api.Granted)
		return &heldLock{task: t}, nil
	}
	locker, ok := s.Lockers[lock]
	if !ok {
		return nil, fmt.Errorf("this replica has no lock %s: %w", lock, stock.ErrUnavailable)
	}
	hold, err := locker.Acquire(ctx, locks.Request{Key: t.key, Owner: t.owner, Wait: t.wait, Lease: t.lease})
	if err != nil {
		return nil, err
	}
	t.trace(ctx, api.Granted)
	return &heldLock{task: t, hold: hold}, nil
}

// context is for the work under the lock: it ends when the lock is lost.
func (s *heldLock) context(ctx context.Context) context.Context {
	if s.hold == nil {
		return ctx
	}
	return s.hold.Context()
}

// verify is ErrLost when the lock can't be trusted any more; nothing was written yet.
func (s *heldLock) verify() error {
	if s.hold == nil || s.gone {
		return nil
	}
	if err := s.hold.Verify(); err != nil {
		return fmt.Errorf("%w: %w", stock.ErrCancelled, err)
	}
	return nil
}

// commit writes in a transaction that calls committing just before it commits. There the
// lock is checked once more, for the transaction may have waited for a connection or a row;
// early releases it there.
func (s *heldLock) commit(ctx context.Context, early bool, write func(committing func() error) error) error {
	committing := func() error {
		if err := s.verify(); err != nil {
			return err
		}
		s.trace(ctx, inserted)
		if early {
			// DANGER: the next one may check now, and does not see what is not committed.
			s.release(ctx)
		}
		return nil
	}
	for {
		if err := s.verify(); err != nil {
			return err
		}
		s.trace(ctx, api.Writing)
		err := write(committing)
		// A rival had the row for too long, and nothing was written: once more.
		if errors.Is(err, stock.ErrConflict) && ctx.Err() == nil {
			continue
		}
		if err == nil {
			s.trace(ctx, api.Written)
		}
		return err
	}
}

// release gives the lock back, once. The answer is what the holder must know of that: the
// empty string is that all went well.
func (s *heldLock) release(ctx context.Context) (warning string) {
	if s.gone {
		return ""
	}
	s.gone = true
	if s.hold != nil {
		if err := s.hold.Release(ctx); err != nil {
			warning = "the lock was lost, or must run out: " + err.Error()
		}
	}
	s.trace(ctx, api.Released)
	return warning
}
