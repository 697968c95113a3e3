// Command redsync is an adapter for github.com/go-redsync/redsync on one Redis, or on the servers of
// REDLOCK_URLS with the argument 5.
package main

import (
	"cmp"
	"context"
	"errors"
	"os"
	"time"

	"github.com/go-redsync/redsync/v4"
	pool "github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"

	"oversell/adapters/library"
	"oversell/locks"
)

func main() {
	variable, backend := "REDIS_URL", "redis"
	if len(os.Args) > 1 && os.Args[1] == "5" {
		variable, backend = "REDLOCK_URLS", "redlock"
	}
	l := &locker{backend: backend, lease: library.Milliseconds("LEASE_MS", 8*time.Second)} // redsync's default
	var pools []pool.Pool
	for _, url := range library.Servers(variable, "redis://127.0.0.1:6379/0") {
		client := redis.NewClient(library.Must(redis.ParseURL(url)))
		l.clients, pools = append(l.clients, client), append(pools, goredis.NewPool(client))
	}
	l.sync = redsync.New(pools...)
	hello := library.Hello("redsync", "4.18.0", "https://pkg.go.dev/github.com/go-redsync/redsync/v4", backend)
	hello.Capabilities.Lease, hello.Capabilities.LeasePerRequest = true, true // it renews only by Extend
	library.Serve(hello, l)
}

type locker struct {
	library.NoCard
	backend string
	lease   time.Duration
	clients []*redis.Client
	sync    *redsync.Redsync
}

func (l *locker) Acquire(ctx context.Context, r locks.Request) (*locks.Lock, error) {
	const many = 1_000_000 // attempts; the wait limits them
	m := l.sync.NewMutex("lock:"+r.Key, redsync.WithExpiry(cmp.Or(r.Lease, l.lease)), redsync.WithTries(many))
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
	return library.Lock(ctx, r, func(ctx context.Context) error { return release(ctx, m) }), nil
}

func release(ctx context.Context, m *redsync.Mutex) error {
	taken := (*redsync.ErrTaken)(nil)
	ok, err := m.UnlockContext(ctx)
	if errors.Is(err, redsync.ErrLockAlreadyExpired) || errors.As(err, &taken) || !ok && err == nil {
		return locks.ErrNotHeld
	}
	return err
}

// Clear deletes the key on all servers.
func (l *locker) Clear(ctx context.Context, key string) error {
	var errs []error
	for _, client := range l.clients {
		errs = append(errs, client.Del(ctx, "lock:"+key).Err())
	}
	return errors.Join(errs...)
}
