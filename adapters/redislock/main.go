// Command redislock is an adapter for github.com/bsm/redislock.
package main

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/bsm/redislock"
	"github.com/redis/go-redis/v9"

	"oversell/adapters/library"
	"oversell/locks"
)

func main() {
	client := redis.NewClient(library.Must(redis.ParseURL(library.Servers("REDIS_URL", "redis://127.0.0.1:6379/0")[0])))
	l := &locker{client: client, locks: redislock.New(client), lease: library.Milliseconds("LEASE_MS", 10*time.Second)}
	hello := library.Hello("bsm/redislock", "0.9.4", "https://pkg.go.dev/github.com/bsm/redislock@v0.9.4", "redis")
	hello.Capabilities.Lease, hello.Capabilities.LeasePerRequest = true, true // it renews only by Refresh
	library.Serve(hello, l)
}

type locker struct {
	library.NoCard
	client *redis.Client
	locks  *redislock.Client
	lease  time.Duration
}

func (l *locker) Acquire(ctx context.Context, r locks.Request) (*locks.Lock, error) {
	var options *redislock.Options // nil: one try
	waiting := ctx
	if r.Wait > 0 {
		var cancel context.CancelFunc
		waiting, cancel = context.WithTimeout(ctx, r.Wait)
		defer cancel()
		options = &redislock.Options{RetryStrategy: redislock.LinearBackoff(100 * time.Millisecond)}
	}
	lock, err := l.locks.Obtain(waiting, "lock:"+r.Key, cmp.Or(r.Lease, l.lease), options)
	if err != nil {
		return nil, library.Failed(ctx, r, "redis", errors.Is(err, redislock.ErrNotObtained), err)
	}
	return library.Lock(ctx, r, func(ctx context.Context) error {
		err := lock.Release(ctx)
		if errors.Is(err, redislock.ErrLockNotHeld) {
			return locks.ErrNotHeld
		}
		return err
	}), nil
}

// Clear deletes the key.
func (l *locker) Clear(ctx context.Context, key string) error {
	return l.client.Del(ctx, "lock:"+key).Err()
}
