package handlers

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"oversell/locks"
	"oversell/stock"
)

// guard reads the parameter of that name: one of those that are no lock, the first if
// none is given, or the id of a locker.
func (s *Service) guard(p *params, unlocked ...string) string {
	known := append(unlocked, slices.Sorted(maps.Keys(s.Lockers))...)
	id := p.text("guard", unlocked[0])
	if !slices.Contains(known, id) {
		p.fail("guard", id, "one of "+strings.Join(known, ", "))
	}
	return id
}

// underLock does the work while it holds r.Key, and then gives it back: whatever the work
// writes is committed by that time. The warning tells what went wrong with the lock after it.
func underLock(ctx context.Context, l locks.Locker, r locks.Request, work func(*locks.Hold) error) (warning string, err error) {
	locks.Trace(ctx, locks.Asked, r.Key, r.Owner, 0)
	hold, err := l.Acquire(ctx, r)
	if err != nil {
		return "", err
	}
	defer func() {
		if late := hold.Release(ctx); late != nil {
			warning = "the lock was lost, or must run out: " + late.Error()
		}
		locks.Trace(ctx, locks.Released, r.Key, r.Owner, hold.Fence())
	}()
	locks.Trace(ctx, locks.Granted, r.Key, r.Owner, hold.Fence())
	if err = work(hold); err == nil || !locks.NothingTaken(err) {
		return "", err
	}
	if lost := hold.Check(); errors.Is(lost, locks.ErrLost) {
		return "", lost // whatever failed because of it
	}
	return "", err
}

// trusted is nil while the hold may be written under. Without a lock there is none to lose.
func trusted(hold *locks.Hold) error {
	if hold == nil {
		return nil
	}
	if err := hold.Check(); err != nil {
		return fmt.Errorf("%w: %w", stock.ErrCancelled, err)
	}
	return nil
}

// forget clears what the lockers left behind for the key: a new class waits for nobody's lease.
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
