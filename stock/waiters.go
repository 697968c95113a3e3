package stock

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sync/semaphore"
	"gorm.io/gorm"
)

// ErrNoRoom means that waiters use all the connections that waiters may use.
var ErrNoRoom = errors.New("too many requests are waiting for a lock, and each of them needs a database connection")

// waiters lets only half of the pool's connections serve requests that wait for a lock.
//
// DANGER: if waiters used all connections, the holder of the lock could not get a connection for
// its write. Other strategies, reads and resets could not get one, either.
type waiters struct {
	places *semaphore.Weighted
	n      int64
}

func newWaiters(conns int) *waiters {
	n := max(1, int64(conns)/2)
	return &waiters{semaphore.NewWeighted(n), n}
}

const waitersName = "oversell:waiters"

// Name registers waiters as a gorm plugin of a database, so that all its users share one limit.
func (*waiters) Name() string { return waitersName }

// Initialize does nothing.
func (*waiters) Initialize(*gorm.DB) error { return nil }

// Enter waits until a request may keep a connection while it waits for a lock, or until ctx ends.
// Call leave when the connection is back in the pool. Open has opened db.
func Enter(ctx context.Context, db *gorm.DB) (leave func(), err error) {
	r, _ := db.Plugins[waitersName].(*waiters) // which Open has registered
	if err := r.places.Acquire(ctx, 1); err != nil {
		return nil, fmt.Errorf("%w: this replica lets at most %d requests wait at a time: %w", ErrNoRoom, r.n, err)
	}
	return func() { r.places.Release(1) }, nil
}

// Connection calls use with one connection, within the limit of Enter. use may wait for a lock.
func Connection(ctx context.Context, db *gorm.DB, use func(*gorm.DB) error) error {
	leave, err := Enter(ctx, db)
	if err != nil {
		return err
	}
	defer leave()
	return db.WithContext(ctx).Connection(use)
}
