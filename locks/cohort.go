package locks

import (
	"context"
	"errors"
	"sync"
	"time"

	"oversell/stock"
)

// Cohort lets a replica that holds a shared lock pass it on to its own waiters, which
// costs nothing, before it gives it back, which costs round trips and somebody's sleep
// (Dice, Marathe and Shavit, "Lock Cohorting", PPoPP 2012). The bounds keep the others
// from starving.
//
// Each holder in the row has a Hold of its own, which is trusted no longer than the
// shared one, is lost when that is, and has its fence.
func Cohort(card Card, shared Locker, bounds Bounds) Locker {
	c := &cohort{card: card, shared: shared, bounds: bounds, passed: map[string]*handedLock{}, gaveUp: map[string]time.Time{}}
	c.turns.Idle = c.giveBackUnclaimed
	return c
}

// Bounds end a row of holders in one replica.
type Bounds struct {
	// Holders is the most of them.
	Holders int
	// Time is the longest that one more may begin. With a lease it is no more than a
	// third of that, too.
	Time time.Duration
	// Yield is how long a replica that reached its bounds stays away from a lock that
	// tells nobody when it is free: time for the others to ask.
	Yield time.Duration
}

type cohort struct {
	card   Card
	shared Locker
	bounds Bounds
	turns  FIFOMutex

	mu     sync.Mutex
	passed map[string]*handedLock // left for whoever has the turn next
	gaveUp map[string]time.Time   // at the bounds, with waiters of our own
}

// handedLock is the shared lock on its way through the replica.
type handedLock struct {
	hold    *Lock
	since   time.Time
	lease   time.Duration // as it was asked for
	holders int
}

func (c *cohort) Card() Card { return c.card }

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

// ask gets the shared lock. It must outlive the request that asked, but not be asked for
// after that one hung up.
func (c *cohort) ask(ctx context.Context, r Request) (*handedLock, error) {
	began := time.Now()
	if away := c.bounds.Yield - time.Since(c.gave(r.Key)); away > 0 && r.Wait > 0 {
		if err := SleepRetry(ctx, r, began, away); err != nil {
			return nil, err
		}
		r.Wait = max(0, r.Wait-time.Since(began))
	}
	life, end := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { end(context.Cause(ctx)) })
	h, err := c.shared.Acquire(life, r)
	if err == nil && !stop() { // hung up at the last moment: nobody is there to hold it
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

// handOver makes the hold of one holder in the row.
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

// release leaves the lock to the next waiter here, or gives it back.
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
		c.gaveUp[key] = time.Now()
	}
	return err
}

// withinBounds says whether one more may hold it here, after those before.
func (c *cohort) withinBounds(b *handedLock) bool {
	longest := c.bounds.Time
	if lease := b.hold.grant.Lease; lease > 0 {
		longest = min(longest, lease/3)
	}
	return b.hold.Verify() == nil && b.holders < c.bounds.Holders && time.Since(b.since) < longest
}

// fits says whether the lock as it is will do for this request.
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

// gave is when this replica gave the lock back with waiters of its own; once.
func (c *cohort) gave(key string) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	at := c.gaveUp[key]
	delete(c.gaveUp, key)
	return at
}

// giveBackUnclaimed gives back what was left for waiters who have all gone away.
func (c *cohort) giveBackUnclaimed(key string) {
	if b := c.take(key); b != nil {
		_ = b.hold.Release(context.Background())
	}
}

// Clear passes on: a decorator must not hide what its locker can do.
func (c *cohort) Clear(ctx context.Context, key string) error { return clearOf(ctx, c.shared, key) }
