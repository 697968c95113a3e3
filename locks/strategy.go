package locks

import (
	"context"

	"oversell/stock"
)

// Strategy takes stock while rivals on other replicas do the same.
type Strategy interface {
	// Card describes the strategy. It is constant and does no I/O.
	Card() Card
	// Deduct takes o.Qty or takes nothing. A nil error: taken, once.
	// An error for which NothingTaken holds: surely nothing was taken.
	// Any other error: the outcome is unknown, and must not be retried blindly.
	Deduct(ctx context.Context, o stock.Order) (stock.Receipt, error)
}

// Cleaner is a Strategy or Locker that can forget what was left behind in its
// backend for a key, whoever holds it. It is for resetting a class, not for
// use beside live holders: they lose their lock.
type Cleaner interface {
	Clear(ctx context.Context, key string) error
}
