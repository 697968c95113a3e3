package locks

import (
	"cmp"
	"context"
	"time"

	"github.com/google/uuid"

	"oversell/api"
	"oversell/stock"
)

// Locker grants a key to one owner at a time. Its card (the description with its claims) names the
// hazards under which it may grant a key to two owners.
type Locker interface {
	Card() api.Card
	// Acquire tries once, then waits until the lock is granted. It returns ErrNotAcquired
	// when ctx ends or r.Wait has passed. It returns stock.Unavailable when the backend cannot
	// be used. A failed Acquire leaves no lock and no waiter in the backend, unless the backend
	// cannot be reached for the clean-up either. They then end with their lease.
	Acquire(ctx context.Context, r Request) (*Lock, error)
}

// Request asks for the lock of a key.
type Request struct {
	Key string
	// Also names further locks, which a lock of several keys acquires together with Key.
	Also []string
	// Owner names the request. The Owner that holds a Reentrant lock can acquire it again.
	Owner string
	// Wait limits the time until the grant. 0 means one try.
	Wait time.Duration
	// Pause is the pause between two tries, if the lock polls. 0 means the strategy's own.
	Pause time.Duration
	// Lease is the time that the grant lasts without renewal. 0 means the strategy's default.
	Lease time.Duration
	// NoRenew says that the lease is not renewed: the lock ends with it, as with Redisson's
	// lock(10, SECONDS).
	NoRenew bool
	// Fenced says that the holder will use the fence. For a fence, the strategy zk needs one more
	// round trip, and redlock needs two. In these two strategies, only a Fenced request gets a fence.
	Fenced bool
}

type decorated struct{ Locker }

func (d decorated) Clear(ctx context.Context, key string) error {
	if c, ok := d.Locker.(Cleaner); ok {
		return c.Clear(ctx, key)
	}
	return nil
}

// Token returns a unique name for one grant, which identifies the grant after a lost answer.
func Token(owner string) string { return owner + ":" + uuid.NewString() }

// CleanUp returns a context that does not end with ctx, for requests that must be sent even after
// ctx was cancelled. An example is the release of a lock that a failed acquisition may have got.
func CleanUp(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
}

// SleepRetry sleeps between two tries for r.Pause, or for d if it is 0, but no longer than r.Wait allows. It
// returns ErrNotAcquired if r.Wait has already passed since began, or if ctx ends.
func SleepRetry(ctx context.Context, r Request, began time.Time, d time.Duration) error {
	return Await(ctx, r, began, cmp.Or(r.Pause, d), nil)
}

// Await works like SleepRetry, but also returns as soon as wake is closed.
func Await(ctx context.Context, r Request, began time.Time, d time.Duration, wake <-chan struct{}) error {
	left := r.Wait - time.Since(began)
	if left <= 0 || ctx.Err() != nil {
		return NotAcquired(ctx, r.Key, r.Wait)
	}
	select {
	case <-wake:
	case <-time.After(min(d, left)):
	case <-ctx.Done():
		return NotAcquired(ctx, r.Key, r.Wait)
	}
	if watch := stock.WatchOf(ctx).Lock; watch != nil {
		watch(stock.LockRetried, nil)
	}
	return nil
}
