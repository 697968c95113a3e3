// Package lockers has the locks of libraries that are on trial as adapters, and whose schedules can be explored.
package lockers

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/go-redsync/redsync/v4"
	pool "github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"

	"oversell/adapters/library"
	"oversell/locks"
)

type redsyncLocker struct {
	library.NoCard
	backend string
	lease   time.Duration
	options []redsync.Option
	clients []redis.UniversalClient
	sync    *redsync.Redsync
}

// Redsync returns the lock of github.com/go-redsync/redsync, on one Redis or on several independent ones.
func Redsync(backend string, lease time.Duration, clients []redis.UniversalClient, options ...redsync.Option) locks.Locker {
	l := &redsyncLocker{backend: backend, lease: lease, clients: clients, options: options}
	var pools []pool.Pool
	for _, client := range clients {
		pools = append(pools, goredis.NewPool(client))
	}
	l.sync = redsync.New(pools...)
	return l
}

func (l *redsyncLocker) Acquire(ctx context.Context, r locks.Request) (*locks.Lock, error) {
	const many = 1_000_000 // attempts; the wait limits them
	options := append([]redsync.Option{redsync.WithExpiry(cmp.Or(r.Lease, l.lease)), redsync.WithTries(many)}, l.options...)
	m := l.sync.NewMutex("lock:"+r.Key, options...)
	var err error
	if r.Wait <= 0 {
		err = m.TryLockContext(ctx)
	} else {
		waiting, cancel := context.WithTimeout(ctx, r.Wait)
		defer cancel()
		err = m.LockContext(waiting)
	}
	if err != nil {
		taken := (*redsync.ErrTaken)(nil)
		return nil, library.Failed(ctx, r, l.backend, errors.As(err, &taken) || errors.Is(err, redsync.ErrFailed), err)
	}
	return library.Lock(ctx, r, func(ctx context.Context) error { return releaseRedsync(ctx, m) }), nil
}

func releaseRedsync(ctx context.Context, m *redsync.Mutex) error {
	taken := (*redsync.ErrTaken)(nil)
	ok, err := m.UnlockContext(ctx)
	if errors.Is(err, redsync.ErrLockAlreadyExpired) || errors.As(err, &taken) || !ok && err == nil {
		return locks.ErrNotHeld
	}
	return err
}

// Clear deletes the key on all servers.
func (l *redsyncLocker) Clear(ctx context.Context, key string) error {
	var errs []error
	for _, client := range l.clients {
		errs = append(errs, client.Del(ctx, "lock:"+key).Err())
	}
	return errors.Join(errs...)
}
