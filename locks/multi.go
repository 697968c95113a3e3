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
	own, sorted := m.inOrder(r.Key)
	var subLocks []*Lock
	for _, key := range sorted {
		h, err := m.inner.Acquire(ctx, Request{
			Key: key, Owner: r.Owner, Lease: r.Lease, NoRenew: r.NoRenew, Fenced: r.Fenced && key == own,
			Wait: max(0, r.Wait-time.Since(began)),
		})
		if err == nil {
			subLocks = append(subLocks, h)
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

func (m *multi) inOrder(key string) (own string, sorted []string) {
	keys := m.keys(key)
	return keys[0], slices.Compact(slices.Sorted(slices.Values(keys)))
}

// join makes one Lock of the sub-locks. The joined Lock is lost when any sub-lock is lost.
func join(ctx context.Context, r Request, own string, subLocks []*Lock) *Lock {
	g := Grant{
		Key: r.Key, Owner: r.Owner, NoRenew: r.NoRenew,
		Release: func(ctx context.Context) error { return releaseAll(ctx, subLocks) },
		// The sub-locks also renew their own leases. This renewal tells the joined lock how long those
		// leases last. So after a pause of the process, Verify reports a loss before any timer runs.
		Renew: func(ctx context.Context) error {
			for _, sub := range subLocks {
				if sub.grant.Renew == nil {
					continue
				}
				if err := sub.grant.Renew(ctx); err != nil {
					return fmt.Errorf("%s: %w", sub.Key(), err)
				}
			}
			return nil
		},
	}
	g.Asked, g.Lease = shortestLease(subLocks)
	for _, sub := range subLocks {
		if sub.grant.Lease > 0 && sub.grant.Renew == nil {
			g.Renew = nil
		}
		if sub.Key() == own {
			g.Fence, g.AdvanceFence = sub.Fence(), sub.advance()
		}
	}
	h := NewLock(ctx, g)
	for _, sub := range subLocks {
		h.OnRelease(h.loseWith(sub))
	}
	return h
}

// shortestLease returns the shortest lease of the sub-locks, or 0 if no sub-lock has a lease. asked
// is set so that this lease ends when the first lease of a sub-lock ends.
func shortestLease(subLocks []*Lock) (asked time.Time, lease time.Duration) {
	var until time.Time
	for _, sub := range subLocks {
		end := sub.trusted()
		if end.IsZero() {
			continue
		}
		if until.IsZero() || end.Before(until) {
			until = end
		}
		if lease == 0 || sub.grant.Lease < lease {
			lease = sub.grant.Lease
		}
	}
	return until.Add(margin(lease) - lease), lease
}

func releaseAll(ctx context.Context, subLocks []*Lock) error {
	var errs []error
	for _, sub := range slices.Backward(subLocks) {
		errs = append(errs, sub.Release(ctx))
	}
	return errors.Join(errs...)
}

func (m *multi) Clear(ctx context.Context, key string) error {
	_, sorted := m.inOrder(key)
	for _, part := range sorted {
		if err := m.inner.Clear(ctx, part); err != nil {
			return err
		}
	}
	return nil
}
