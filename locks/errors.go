package locks

import (
	"errors"

	"oversell/stock"
)

var (
	// ErrNotAcquired says that the wait ended or the request was cancelled before a grant.
	ErrNotAcquired = errors.New("lock not acquired")
	// ErrNotHeld says that the lock to release or renew has expired, or was released.
	ErrNotHeld = errors.New("lock not held")
	// ErrLost is the cause with which a Lock's context ends when the lock can no longer be trusted.
	ErrLost = errors.New("lock lost")
)

// NothingTaken reports whether err proves that no stock was taken.
func NothingTaken(err error) bool {
	for _, sure := range []error{
		stock.ErrSoldOut, stock.ErrUnknownProduct, stock.ErrFenced, stock.ErrConflict,
		stock.ErrCancelled, stock.ErrUnavailable, ErrNotAcquired, ErrLost,
	} {
		if errors.Is(err, sure) {
			return true
		}
	}
	return false
}
