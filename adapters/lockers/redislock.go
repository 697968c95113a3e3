package lockers

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

type redislockLocker struct {
	library.NoCard
	client redis.UniversalClient
	locks  *redislock.Client
	lease  time.Duration
}

// Redislock returns the lock of github.com/bsm/redislock.
func Redislock(client redis.UniversalClient, lease time.Duration) locks.Locker {
	return &redislockLocker{client: client, locks: redislock.New(client), lease: lease}
}

func (l *redislockLocker) Acquire(ctx context.Context, r locks.Request) (*locks.Lock, error) {
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
func (l *redislockLocker) Clear(ctx context.Context, key string) error {
	return l.client.Del(ctx, "lock:"+key).Err()
}
