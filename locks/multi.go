package locks

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"oversell/api"
)

// Multi makes one lock of several: all of them or none (tutorial 3.9.3, 4.6.4). keys returns
// what a request for a key locks, first the key whose fence is used.
//
// The locks are acquired in sorted order of their keys. Otherwise two requests could each
// hold one lock and wait for the other: a deadlock. r.Wait is for all of them together.
func Multi(card api.Card, l Locker, keys func(key string) []string) Locker {
	return &multi{card: card, inner: l, keys: keys}
}

type multi struct {
	card  api.Card
	inner Locker
	keys  func(key string) []string
}

func (m *multi) Card() api.Card { return m.card }

func (m *multi) Acquire(ctx context.Context, r Request) (*Lock, error) {
	began := time.Now()
	own, sorted := m.inOrder(r.Key)
	var parts []*Lock
	for _, key := range sorted {
		part := Request{
			Key: key, Owner: r.Owner, Lease: r.Lease, Fenced: r.Fenced && key == own,
			Wait: max(0, r.Wait-time.Since(began)),
		}
		h, err := m.inner.Acquire(ctx, part)
		if err == nil {
			parts = append(parts, h)
			// DANGER: a lock that is held already may be lost during the wait for the next.
			err = lostWhileWaiting(parts)
		}
		if err != nil {
			_ = releaseAll(ctx, parts)
			return nil, fmt.Errorf("%s of %s: %w", key, r.Key, err)
		}
	}
	return m.hold(ctx, r, own, parts), nil
}

// inOrder returns the key whose fence is used, and all keys, sorted, each once.
func (m *multi) inOrder(key string) (own string, sorted []string) {
	keys := m.keys(key)
	return keys[0], slices.Compact(slices.Sorted(slices.Values(keys)))
}

// lostWhileWaiting returns ErrNotAcquired when one of the parts was lost again.
func lostWhileWaiting(parts []*Lock) error {
	for _, p := range parts {
		if err := p.Verify(); err != nil {
			return fmt.Errorf("%w: %w", ErrNotAcquired, err)
		}
	}
	return nil
}

// hold makes one Lock of the parts. It is lost as soon as one of them is.
func (m *multi) hold(ctx context.Context, r Request, own string, parts []*Lock) *Lock {
	g := Grant{
		Key: r.Key, Owner: r.Owner,
		Release: func(ctx context.Context) error { return releaseAll(ctx, parts) },
	}
	g.Asked, g.Lease = shortestTrust(parts)
	// The parts renew themselves, too. This renewal keeps our own clock: in a process that
	// was paused, Verify must see the end of the lease before any timer runs.
	g.Renew = func(ctx context.Context) error { return renewAll(ctx, parts) }
	for _, p := range parts {
		if p.grant.Lease > 0 && p.grant.Renew == nil {
			g.Renew = nil
		}
		if p.Key() != own {
			continue
		}
		g.Fence = p.Fence()
		if p.grant.AdvanceFence != nil {
			g.AdvanceFence = func(ctx context.Context, floor int64) (int64, error) {
				err := p.AdvanceFence(ctx, floor)
				return p.Fence(), err
			}
		}
	}
	h := NewLock(ctx, g)
	for _, p := range parts {
		h.OnRelease(h.loseWith(p))
	}
	return h
}

// shortestTrust returns a lease that ends with that of the first part to expire: a part that
// was acquired early may have been renewed since, or not. 0: there is no lease.
func shortestTrust(parts []*Lock) (asked time.Time, lease time.Duration) {
	var until time.Time
	for _, p := range parts {
		end := p.trusted()
		if end.IsZero() {
			continue
		}
		if until.IsZero() || end.Before(until) {
			until = end
		}
		if lease == 0 || p.grant.Lease < lease {
			lease = p.grant.Lease
		}
	}
	now := time.Now()
	return until.Add(-trustedUntil(now, lease).Sub(now)), lease
}

func renewAll(ctx context.Context, parts []*Lock) error {
	for _, p := range parts {
		if p.grant.Renew == nil {
			continue
		}
		if err := p.grant.Renew(ctx); err != nil {
			return fmt.Errorf("%s: %w", p.Key(), err)
		}
	}
	return nil
}

// releaseAll releases every part, the last acquired first, also after an error.
func releaseAll(ctx context.Context, parts []*Lock) error {
	var errs []error
	for _, p := range slices.Backward(parts) {
		errs = append(errs, p.Release(ctx))
	}
	return errors.Join(errs...)
}

// Clear clears all keys in the inner locker.
func (m *multi) Clear(ctx context.Context, key string) error {
	_, sorted := m.inOrder(key)
	for _, part := range sorted {
		if err := clearOf(ctx, m.inner, part); err != nil {
			return err
		}
	}
	return nil
}
