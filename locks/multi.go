package locks

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Multi makes one lock of several: all of them or none (tutorial 3.9.3, 4.6.4).
// keys names what a request for a key locks, first the one whose fence counts.
//
// The keys are taken in sorted order, whatever order keys has: two who want the
// same two the other way round would each hold one and wait for the other. One
// wait is for all of them together. Re-entrancy is the inner locker's.
func Multi(card Card, l Locker, keys func(key string) []string) Locker {
	return &multi{card: card, inner: l, keys: keys}
}

type multi struct {
	card  Card
	inner Locker
	keys  func(key string) []string
}

func (m *multi) Card() Card { return m.card }

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
			// DANGER: what is held already may be lost while we wait for the rest.
			err = lostWhileWaiting(parts)
		}
		if err != nil {
			_ = releaseAll(ctx, parts)
			return nil, fmt.Errorf("%s of %s: %w", key, r.Key, err)
		}
	}
	return m.hold(ctx, r, own, parts), nil
}

// inOrder returns the key whose fence counts, and all keys, sorted, each once.
func (m *multi) inOrder(key string) (own string, sorted []string) {
	keys := m.keys(key)
	return keys[0], slices.Compact(slices.Sorted(slices.Values(keys)))
}

// lostWhileWaiting is ErrNotAcquired when a part that was taken is gone again.
func lostWhileWaiting(parts []*Lock) error {
	for _, p := range parts {
		if err := p.Verify(); err != nil {
			return fmt.Errorf("%w: %w", ErrNotAcquired, err)
		}
	}
	return nil
}

// hold is lost as soon as one of its parts is.
func (m *multi) hold(ctx context.Context, r Request, own string, parts []*Lock) *Lock {
	g := Grant{
		Key: r.Key, Owner: r.Owner,
		Release: func(ctx context.Context) error { return releaseAll(ctx, parts) },
	}
	g.Asked, g.Lease = shortestTrust(parts)
	// The parts renew themselves too. This one is for our own clock: Check must see
	// that the lease is over in a process that slept past it, before any timer fires.
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

// shortestTrust is a lease that ends when the first part's does: a part taken
// early may have been renewed since, or not. A lease of 0 is none.
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

// releaseAll gives back every part, the last taken first, also when one fails.
func releaseAll(ctx context.Context, parts []*Lock) error {
	var errs []error
	for _, p := range slices.Backward(parts) {
		errs = append(errs, p.Release(ctx))
	}
	return errors.Join(errs...)
}

// Clear clears all the keys.
func (m *multi) Clear(ctx context.Context, key string) error {
	_, sorted := m.inOrder(key)
	for _, part := range sorted {
		if err := clearOf(ctx, m.inner, part); err != nil {
			return err
		}
	}
	return nil
}
