// Command rueidislock is an adapter for github.com/redis/rueidis/rueidislock on one Redis.
package main

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"

	"oversell/adapters/library"
	"oversell/locks"
	"oversell/stock"
)

func main() {
	hello := library.Hello("rueidislock", "1.0.77", "https://github.com/redis/rueidis/blob/v1.0.77/rueidislock/README.md", "redis")
	c := &hello.Capabilities
	c.Lease, c.Renewal, c.LossNotice = true, true, true // the lock's context ends with the lock
	library.Serve(hello, &locker{})
}

type locker struct {
	library.NoCard
	mu    sync.Mutex
	locks rueidislock.Locker // nil until the first request, because it connects at once
}

func (l *locker) open() (rueidislock.Locker, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.locks != nil {
		return l.locks, nil
	}
	option, err := rueidis.ParseURL(library.Servers("REDIS_URL", "redis://127.0.0.1:6379/0")[0])
	if err != nil {
		return nil, err
	}
	l.locks, err = rueidislock.NewLocker(rueidislock.LockerOption{
		ClientOption: option, KeyMajority: 1, NoLoopTracking: true, // as the README advises for one Redis
		KeyValidity: library.Milliseconds("LEASE_MS", 5*time.Second),
	})
	return l.locks, err
}

func (l *locker) Acquire(ctx context.Context, r locks.Request) (*locks.Lock, error) {
	locker, err := l.open()
	if err != nil {
		return nil, &stock.Unavailable{Backend: "redis", Err: err}
	}
	acquire, wait := locker.WithContext, r.Wait
	if wait <= 0 {
		acquire, wait = locker.TryWithContext, time.Minute
	}
	// The library releases the lock when the context of the acquisition ends.
	lasting, keep, cancel := library.Lasting(ctx, wait)
	held, unlock, err := acquire(lasting, r.Key)
	if err == nil && !keep() {
		unlock()
		err = context.Canceled
	}
	if err != nil {
		cancel()
		return nil, library.Failed(ctx, r, "redis", errors.Is(err, rueidislock.ErrNotLocked), err)
	}
	return library.Noticed(ctx, r, held.Done(), func(context.Context) error {
		unlock()
		cancel()
		return nil
	}), nil
}

// Clear deletes the only key of a lock with KeyMajority 1.
func (l *locker) Clear(ctx context.Context, key string) error {
	locker, err := l.open()
	if err != nil {
		return err
	}
	client := locker.Client()
	return client.Do(ctx, client.B().Del().Key("rueidislock:0:"+key).Build()).Error()
}
