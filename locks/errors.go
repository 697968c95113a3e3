package locks

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"oversell/stock"
)

var (
	// ErrNotAcquired says that the wait ended or the request was cancelled before a grant.
	ErrNotAcquired = errors.New("lock not acquired")
	// ErrNotHeld says that the lock to release or renew has expired, or was released.
	ErrNotHeld = errors.New("lock not held")
	// ErrLost is the cause with which a Lock's context ends when the lock can no longer be trusted.
	ErrLost = errors.New("lock lost")
	// ErrLate is why a lock with renewals is lost if none succeeded in its lease: this process got no processor, or
	// the backend did not answer.
	ErrLate = errors.New("no renewal in time")
)

// WaitEnded is the ErrNotAcquired of a request that has waited for the whole of its wait.
type WaitEnded struct {
	Key  string
	Wait time.Duration
}

func (e *WaitEnded) Error() string {
	if e.Wait == 0 {
		return fmt.Sprintf("lock %s not acquired at once", e.Key)
	}
	return fmt.Sprintf("lock %s not acquired within %v", e.Key, e.Rounded())
}

// Unwrap returns ErrNotAcquired, so that errors.Is finds it.
func (e *WaitEnded) Unwrap() error { return ErrNotAcquired }

// Rounded returns Wait in whole milliseconds, because readers need no nanoseconds.
func (e *WaitEnded) Rounded() time.Duration { return e.Wait.Round(time.Millisecond) }

// NotAcquired returns an ErrNotAcquired with its reason: ctx has ended, or wait has passed.
func NotAcquired(ctx context.Context, key string, wait time.Duration) error {
	if ctx.Err() != nil {
		return fmt.Errorf("%w: %s: %w", ErrNotAcquired, key, context.Cause(ctx))
	}
	return &WaitEnded{key, wait}
}

// NothingTaken reports whether err proves that no stock was taken.
func NothingTaken(err error) bool {
	return slices.ContainsFunc([]error{
		stock.ErrSoldOut, stock.ErrUnknownProduct, stock.ErrFenced, stock.ErrConflict,
		stock.ErrCancelled, stock.ErrUnavailable, ErrNotAcquired, ErrLost,
	}, func(sure error) bool { return errors.Is(err, sure) })
}
