package locks

import (
	"context"
	"errors"
	"sync"
	"time"

	"oversell/api"
)

// Cohort decorates a lock that all replicas share (Dice, Marathe and Shavit, "Lock Cohorting",
// PPoPP 2012). A replica passes the shared lock on to its own waiting requests, without a round
// trip, before it releases the lock. The bounds ensure that other replicas also get the lock. Each
// holder's Lock has the shared Lock's fence, and is lost with the shared Lock.
func Cohort(card api.Card, shared Locker, bounds Bounds) Locker {
	c := &cohort{decorated: decorated{shared}, card: card, bounds: bounds, passed: map[string]*sharedLock{}, yielded: map[string]time.Time{}}
	c.turns.Idle = c.releaseUnclaimed
	return c
}

// Bounds limit the time for which one replica keeps the shared lock.
type Bounds struct {
	// Holders is how many requests of one replica may hold the shared lock one after the other.
	Holders int
	// Time is how long after its acquisition a lock may be passed on, but at most lease/3.
	Time time.Duration
	// Yield is the pause of a replica that released the shared lock while its own requests waited.
	// Other replicas can acquire the lock during the pause.
	Yield time.Duration
}

type cohort struct {
	decorated
	card   api.Card
	bounds Bounds
	turns  FIFOMutex

	mu      sync.Mutex
	passed  map[string]*sharedLock // locks that were passed on to the next request
	yielded map[string]time.Time   // when the bounds were reached while own requests waited
}

type sharedLock struct {
	*Lock
	since   time.Time
	lease   time.Duration // the lease of the request that acquired the shared lock
	holders int
}

func (c *cohort) Card() api.Card { return c.card }

func (c *cohort) Acquire(ctx context.Context, r Request) (*Lock, error) {
	began := time.Now()
	leave, err := c.turns.Take(ctx, r.Key, r.Wait)
	if err != nil {
		return nil, err
	}
	shared := takeEntry(c, c.passed, r.Key)
	if shared != nil && !shared.fits(r) {
		_ = shared.Release(ctx)
		shared = nil
	}
	if r.NoRenew { // such a lock is not passed on
		return c.acquireAlone(ctx, r, began, leave)
	}
	if shared == nil {
		r.Wait = max(0, r.Wait-time.Since(began))
		_, err = c.turns.AsFirst(ctx, r.Key, r, func(ctx context.Context, r Request) (_ *Lock, err error) {
			shared, err = c.acquireShared(ctx, r)
			return nil, err
		})
		if err != nil {
			leave()
			return nil, err
		}
	}
	shared.holders++
	h := NewLock(ctx, Grant{
		Key: r.Key, Owner: r.Owner, Within: []*Lock{shared.Lock}, Fence: shared.Fence(), AdvanceFence: shared.advance(),
		Release: func(ctx context.Context) error { return c.passOnOrRelease(ctx, r.Key, shared) },
	})
	h.OnRelease(leave)
	return h, nil
}

func (c *cohort) acquireAlone(ctx context.Context, r Request, began time.Time, leave func()) (*Lock, error) {
	r.Wait = max(0, r.Wait-time.Since(began))
	h, err := c.Locker.Acquire(ctx, r)
	if err != nil {
		leave()
		return nil, err
	}
	h.OnRelease(leave)
	return h, nil
}

// acquireShared gives up when ctx ends. But a granted shared lock stays held when ctx ends.
func (c *cohort) acquireShared(ctx context.Context, r Request) (*sharedLock, error) {
	began := time.Now()
	if pause := c.bounds.Yield - time.Since(takeEntry(c, c.yielded, r.Key)); pause > 0 && r.Wait > 0 {
		if err := SleepRetry(ctx, r, began, pause); err != nil {
			return nil, err
		}
		r.Wait = max(0, r.Wait-time.Since(began))
	}
	h, err := AcquireForLonger(ctx, r, c.Locker.Acquire)
	if err != nil {
		return nil, err
	}
	return &sharedLock{Lock: h, since: time.Now(), lease: r.Lease}, nil
}

// AcquireForLonger acquires a lock that outlives ctx, but no lock stays if ctx is cancelled before the grant.
func AcquireForLonger(ctx context.Context, r Request, acquire func(context.Context, Request) (*Lock, error)) (*Lock, error) {
	life, end := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { end(context.Cause(ctx)) })
	lock, err := acquire(life, r)
	if err == nil && !stop() { // the request was cancelled at the last moment
		err = errors.Join(NotAcquired(ctx, r.Key, r.Wait), lock.Release(ctx))
	}
	if err != nil {
		stop()
		end(nil)
		return nil, err
	}
	lock.OnRelease(func() { end(nil) })
	return lock, nil
}

func (c *cohort) passOnOrRelease(ctx context.Context, key string, shared *sharedLock) error {
	waiting := c.turns.Waiting(key) > 0
	if waiting && c.withinBounds(shared) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.passed[key] = shared
		return nil
	}
	err := shared.Release(ctx)
	if waiting && c.bounds.Yield > 0 {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.yielded[key] = time.Now()
	}
	return err
}

func (c *cohort) withinBounds(shared *sharedLock) bool {
	longest := c.bounds.Time
	if lease := shared.grant.Lease; lease > 0 {
		longest = min(longest, lease/3)
	}
	return shared.Verify() == nil && shared.holders < c.bounds.Holders && time.Since(shared.since) < longest
}

func (s *sharedLock) fits(r Request) bool {
	return s.Verify() == nil && !r.NoRenew && s.lease == r.Lease && (!r.Fenced || s.Fence() > 0)
}

func takeEntry[V any](c *cohort, of map[string]V, key string) V {
	c.mu.Lock()
	defer c.mu.Unlock()
	entry := of[key]
	delete(of, key)
	return entry
}

// releaseUnclaimed releases a shared lock that was passed on, if its next holder has given up.
func (c *cohort) releaseUnclaimed(key string) {
	if shared := takeEntry(c, c.passed, key); shared != nil {
		_ = shared.Release(context.Background())
	}
}
