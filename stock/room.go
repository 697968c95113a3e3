package stock

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"golang.org/x/sync/semaphore"
	"gorm.io/gorm"
)

// ErrNoRoom says that as many connections as may be kept by waiters are kept.
var ErrNoRoom = errors.New("no room among those that wait with a connection")

// room is half of a pool's connections: the part for those that keep a connection while
// they wait for a lock, which may take a minute.
//
// DANGER: were all connections theirs, a holder that needs one to go on would never get
// it, and neither would other strategies, reads and resets.
type room struct {
	once   sync.Once
	places *semaphore.Weighted
	n      int64
}

const roomName = "oversell:room"

// Name makes a room a plugin of gorm's, so that all who use a database share one.
func (*room) Name() string { return roomName }

// Initialize does nothing: the pool's size may still be set.
func (*room) Initialize(*gorm.DB) error { return nil }

// Enter waits for a place until ctx ends; leave it when the connection is given back. A
// pool without a bound has room for all.
func Enter(ctx context.Context, db *gorm.DB) (leave func(), err error) {
	r, ok := db.Plugins[roomName].(*room)
	if !ok {
		return func() {}, nil
	}
	pool, err := db.DB()
	if err != nil {
		return nil, fmt.Errorf("mysql pool: %w", err)
	}
	r.once.Do(func() {
		if conns := pool.Stats().MaxOpenConnections; conns > 0 {
			r.n = max(1, int64(conns)/2)
			r.places = semaphore.NewWeighted(r.n)
		}
	})
	if r.places == nil {
		return func() {}, nil
	}
	if err := r.places.Acquire(ctx, 1); err != nil {
		return nil, fmt.Errorf("%w: %d of this replica's connections are for them: %w", ErrNoRoom, r.n, err)
	}
	return func() { r.places.Release(1) }, nil
}

// Connection lets use have a connection of its own for as long as it runs, in which it may
// wait for a lock: as gorm's does, but within the room for that.
func Connection(ctx context.Context, db *gorm.DB, use func(*gorm.DB) error) error {
	leave, err := Enter(ctx, db)
	if err != nil {
		return err
	}
	defer leave()
	return db.WithContext(ctx).Connection(use)
}
