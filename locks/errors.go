package locks

import (
	"errors"

	"oversell/stock"
)

var (
	// ErrNotAcquired says that the wait was over, or the caller went away.
	ErrNotAcquired = errors.New("lock not acquired")
	// ErrNotHeld says that there was nothing left to release or renew.
	ErrNotHeld = errors.New("lock not held")
	// ErrLost is the cause with which a hold's context ends once the hold can
	// no longer be trusted.
	ErrLost = errors.New("lock lost")
)

// NothingTaken reports whether err says for sure that no stock was taken.
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
