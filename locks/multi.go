package locks

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"oversell/api"
)

// Multi joins several locks into one, all or none (tutorial 3.9.3, 4.6.4). keys returns the keys to
// lock for a requested key. The first of these keys gives the joined lock its fence. The keys are
// locked in sorted order, or two requests could wait for each other (a deadlock). r.Wait limits the
// sum of all waits.
func Multi(card api.Card, l Locker, keys func(key string) []string) Locker {
	return &multi{card: card, inner: decorated{l}, keys: keys}
}

type multi struct {
	card  api.Card
	inner decorated
	keys  func(key string) []string
}

func (m *multi) Card() api.Card { return m.card }

func (m *multi) Acquire(ctx context.Context, r Request) (*Lock, error) {
	began := time.Now()
	own, sorted := m.inOrder(r)
	var subLocks []*Lock
	for _, key := range sorted {
		h, err := m.inner.Acquire(ctx, Request{
			Key: key, Owner: r.Owner, Lease: r.Lease, NoRenew: r.NoRenew, Fenced: r.Fenced && key == own,
			Wait: max(0, r.Wait-time.Since(began)),
		})
		if err == nil {
			subLocks = append(subLocks, h)
			if len(r.Also) > 0 && len(subLocks) < len(sorted) {
				Trace(ctx, api.Part, r.Key, r.Owner, 0)
			}
			// DANGER: a lock that is held already may be lost during the wait for the next lock.
			for _, held := range subLocks {
				if lost := held.Verify(); lost != nil {
					err = fmt.Errorf("%w: %w", ErrNotAcquired, lost)
				}
			}
		}
		if err != nil {
			_ = releaseAll(ctx, subLocks)
			return nil, fmt.Errorf("%s needs %d locks: %w", r.Key, len(sorted), err)
		}
	}
	return join(ctx, r, own, subLocks), nil
}

func (m *multi) inOrder(r Request) (own string, sorted []string) {
	var keys []string
	for _, name := range append(slices.Clone(r.Also), r.Key) {
		keys = append(keys, m.keys(name)...)
	}
	return m.keys(r.Key)[0], slices.Compact(slices.Sorted(slices.Values(keys)))
}

// join makes one Lock of the sub-locks, which go on to renew their own leases. The joined Lock is lost
// when any sub-lock is lost.
func join(ctx context.Context, r Request, own string, subLocks []*Lock) *Lock {
	g := Grant{
		Key: r.Key, Owner: r.Owner, NoRenew: r.NoRenew, Within: subLocks,
		Release: func(ctx context.Context) error { return releaseAll(ctx, subLocks) },
	}
	for _, sub := range subLocks {
		if sub.Key() == own {
			g.Fence, g.AdvanceFence = sub.Fence(), sub.advance()
		}
	}
	return NewLock(ctx, g)
}

func releaseAll(ctx context.Context, subLocks []*Lock) error {
	var errs []error
	for _, sub := range slices.Backward(subLocks) {
		errs = append(errs, sub.Release(ctx))
	}
	return errors.Join(errs...)
}

func (m *multi) Clear(ctx context.Context, key string) error {
	_, sorted := m.inOrder(Request{Key: key})
	for _, part := range sorted {
		if err := m.inner.Clear(ctx, part); err != nil {
			return err
		}
	}
	return nil
}
