package locks

import (
	"context"
	"time"

	"github.com/google/uuid"
)

// Locker grants a key to one owner at a time, as far as its card promises.
// Guard makes a Strategy of it.
type Locker interface {
	Card() Card
	// Acquire tries once, then waits until granted, ctx ends or r.Wait has
	// passed; the last two wrap ErrNotAcquired. A backend that cannot be used
	// is a stock.Unavailable. On failure it leaves nothing behind.
	Acquire(ctx context.Context, r Request) (*Lock, error)
}

// Request is one task's wish for a key.
type Request struct {
	Key string
	// Owner is one task; the same Owner may re-enter where the card says so.
	Owner string
	// Wait is the patience in the queue; 0 is one try.
	Wait time.Duration
	// Lease is the life of the grant; 0 is the strategy's default.
	Lease time.Duration
	// Fenced says that the holder will use the fence. Where one costs more
	// round trips (zk one, redlock two), it is minted only then.
	Fenced bool
}

// Token names one grant of an owner: a backend that finds it knows which grant
// it has before it, also after a lost answer or a second grant.
func Token(owner string) string { return owner + ":" + uuid.NewString() }

// CleanUp is the context in which an acquisition that failed or was cancelled
// takes back what it may have left behind.
func CleanUp(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
}

// SleepRetry sleeps for d between two tries, but not past r.Wait: then, or when ctx
// ends, it is ErrNotAcquired.
func SleepRetry(ctx context.Context, r Request, began time.Time, d time.Duration) error {
	return Await(ctx, r, began, d, nil)
}

// Await is Doze that a wake-up may cut short.
func Await(ctx context.Context, r Request, began time.Time, d time.Duration, wake <-chan struct{}) error {
	left := r.Wait - time.Since(began)
	if left <= 0 || ctx.Err() != nil {
		return NotAcquired(ctx, r.Key, r.Wait)
	}
	timer := time.NewTimer(min(d, left))
	defer timer.Stop()
	select {
	case <-wake:
	case <-timer.C:
	case <-ctx.Done():
		return NotAcquired(ctx, r.Key, r.Wait)
	}
	return nil
}
