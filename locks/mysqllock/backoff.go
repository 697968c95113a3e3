package mysqllock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"oversell/api"
	"oversell/locks"
	"oversell/stock"
)

const (
	// The mean pause is longestPause at the beginning of a wait, and shortestPause near its end.
	longestPause  = 80 * time.Millisecond
	shortestPause = time.Millisecond
	// lastAttempt is the time for one more attempt that a pause must leave before the wait ends.
	lastAttempt = 5 * time.Millisecond
)

type backoff struct {
	began time.Time
	wait  time.Duration
	// least is the least mean pause. It is 0 for strategies in which one of the competing requests always succeeds.
	least time.Duration
}

func newBackoff(wait time.Duration) *backoff {
	return &backoff{began: time.Now(), wait: wait}
}

func (b *backoff) left() time.Duration { return max(0, b.wait-time.Since(b.began)) }

// retry repeats an attempt after contention, until the wait is over. MySQL has then rolled back the
// statement (after error 1205) or the transaction (after error 1213). It also repeats an attempt that was interrupted
// before its write.
func (b *backoff) retry(ctx context.Context, o stock.Order, r *stock.Receipt, attempt func(left time.Duration) error) error {
	for {
		err := attempt(b.left())
		if ended := (*locks.WaitEnded)(nil); errors.As(err, &ended) {
			return locks.NotAcquired(ctx, ended.Key, o.Wait) // the attempt knows only the rest of the wait
		}
		if cause := stock.Interrupted(err); cause != nil {
			err = cause
		} else if !stock.IsContention(err) {
			return err
		}
		r.Retries++
		if !b.pause(ctx) {
			return fmt.Errorf("%w: %w", locks.NotAcquired(ctx, api.Key(o.Product), o.Wait), err)
		}
	}
}

// pause is random, lest requests collide again. It returns false if no attempt fits in the wait.
func (b *backoff) pause(ctx context.Context) bool {
	mean := max(meanPause(b.left(), b.wait), b.least)
	most := b.left() - lastAttempt
	if most <= 0 {
		return false
	}
	return locks.Work(ctx, min(locks.Jitter(ctx, 2*mean), most)) == nil && ctx.Err() == nil
}

// meanPause returns a mean pause that shrinks towards the end of the wait, fast at first. With the
// usual back-off, pauses grow. New requests then try most often, and overtake the oldest requests.
func meanPause(left, wait time.Duration) time.Duration {
	if wait <= 0 {
		return shortestPause
	}
	share := float64(left) / float64(wait)
	return shortestPause + time.Duration(float64(longestPause-shortestPause)*share*share)
}

// withTimeout runs a statement that waits for a row lock. It returns ErrNotAcquired at the timeout.
func withTimeout(ctx context.Context, key string, timeout time.Duration, statement func(context.Context) error) error {
	waiting, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	err := statement(waiting)
	if err != nil && waiting.Err() != nil {
		return locks.NotAcquired(ctx, key, timeout)
	}
	return err
}
