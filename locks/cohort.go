package locks

import (
	"context"
	"errors"
	"sync"
	"time"

	"oversell/api"
	"oversell/stock"
)

// Cohort is a decorator: a replica that holds the shared lock passes it on to its own waiters
// before it releases it (Dice, Marathe and Shavit, "Lock Cohorting", PPoPP 2012). Passing on
// needs no round trip. The bounds keep the other replicas from starving.
//
// Each of these holders has a Lock of its own. It is trusted no longer than the shared Lock,
// is lost with it, and has its fence.
func Cohort(card api.Card, shared Locker, bounds Bounds) Locker {
	c := &cohort{card: card, shared: shared, bounds: bounds, passed: map[string]*handedLock{}, yielded: map[string]time.Time{}}
	c.turns.Idle = c.giveBackUnclaimed
	return c
}

// Bounds limit how long one replica keeps the shared lock.
type Bounds struct {
	// Holders is the largest number of holders in a row.
	Holders int
	// Time is the time after which no further holder follows; at most a third of the lease.
	Time time.Duration
	// Yield is how long a replica stays away after it has reached its bounds while tasks of
	// its own wait: time for the other replicas to acquire.
	Yield time.Duration
}

type cohort struct {
	card   api.Card
	shared Locker
	bounds Bounds
	turns  FIFOMutex

	mu      sync.Mutex
	passed  map[string]*handedLock // for the task that has the next turn
	yielded map[string]time.Time   // when we reached the bounds with waiters of our own
}

// handedLock is the shared lock while this replica holds it.
type handedLock struct {
	hold    *Lock
	since   time.Time
	lease   time.Duration // of the request that acquired it
	holders int
}

func (c *cohort) Card() api.Card { return c.card }

func (c *cohort) Acquire(ctx context.Context, r Request) (*Lock, error) {
	began := time.Now()
	leave, err := c.turns.Take(ctx, r.Key, r.Wait)
	if err != nil {
		return nil, err
	}
	b := c.take(r.Key)
	if b != nil && !b.fits(r) {
		_ = b.hold.Release(ctx)
		b = nil
	}
	if b == nil {
		r.Wait = max(0, r.Wait-time.Since(began))
		b, err = c.ask(ctx, r)
		if errors.Is(err, stock.ErrUnavailable) {
			c.turns.Fail(r.Key, err)
		}
		if err != nil {
			leave()
			return nil, err
		}
	}
	b.holders++
	return c.handOver(ctx, r, b, leave), nil
}

// ask acquires the shared lock. The lock must outlive the request that acquires it, but the
// acquisition must end when that request does.
func (c *cohort) ask(ctx context.Context, r Request) (*handedLock, error) {
	began := time.Now()
	if away := c.bounds.Yield - time.Since(c.lastYield(r.Key)); away > 0 && r.Wait > 0 {
		if err := SleepRetry(ctx, r, began, away); err != nil {
			return nil, err
		}
		r.Wait = max(0, r.Wait-time.Since(began))
	}
	life, end := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { end(context.Cause(ctx)) })
	h, err := c.shared.Acquire(life, r)
	if err == nil && !stop() { // the request was cancelled at the last moment
		_ = h.Release(ctx)
		err = NotAcquired(ctx, r.Key, r.Wait)
	}
	if err != nil {
		stop()
		end(nil)
		return nil, err
	}
	h.OnRelease(func() { end(nil) })
	return &handedLock{hold: h, since: time.Now(), lease: r.Lease}, nil
}

// handOver makes the Lock of one holder.
func (c *cohort) handOver(ctx context.Context, r Request, b *handedLock, leave func()) *Lock {
	g := Grant{
		Key: r.Key, Owner: r.Owner, Within: b.hold, Fence: b.hold.Fence(),
		Release: func(ctx context.Context) error { return c.release(ctx, r.Key, b) },
	}
	if b.hold.grant.AdvanceFence != nil {
		g.AdvanceFence = func(ctx context.Context, floor int64) (int64, error) {
			err := b.hold.AdvanceFence(ctx, floor)
			return b.hold.Fence(), err
		}
	}
	h := NewLock(ctx, g)
	h.OnRelease(leave)
	return h
}

// release leaves the lock to the next waiter of this replica, or releases it.
func (c *cohort) release(ctx context.Context, key string, b *handedLock) error {
	waiting := c.turns.Waiting(key)
	if waiting && c.withinBounds(b) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.passed[key] = b
		return nil
	}
	err := b.hold.Release(ctx)
	if waiting && c.bounds.Yield > 0 {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.yielded[key] = time.Now()
	}
	return err
}

// withinBounds reports whether one more task of this replica may hold the lock.
func (c *cohort) withinBounds(b *handedLock) bool {
	longest := c.bounds.Time
	if lease := b.hold.grant.Lease; lease > 0 {
		longest = min(longest, lease/3)
	}
	return b.hold.Verify() == nil && b.holders < c.bounds.Holders && time.Since(b.since) < longest
}

// fits reports whether the request can use the lock with its lease and fence.
func (b *handedLock) fits(r Request) bool {
	return b.hold.Verify() == nil && b.lease == r.Lease && (!r.Fenced || b.hold.Fence() > 0)
}

func (c *cohort) take(key string) *handedLock {
	c.mu.Lock()
	defer c.mu.Unlock()
	b := c.passed[key]
	delete(c.passed, key)
	return b
}

// lastYield returns when this replica reached its bounds with waiters of its own, once.
func (c *cohort) lastYield(key string) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	at := c.yielded[key]
	delete(c.yielded, key)
	return at
}

// giveBackUnclaimed releases a lock that was left for waiters which have all gone.
func (c *cohort) giveBackUnclaimed(key string) {
	if b := c.take(key); b != nil {
		_ = b.hold.Release(context.Background())
	}
}

// Clear clears the shared locker.
func (c *cohort) Clear(ctx context.Context, key string) error { return clearOf(ctx, c.shared, key) }
