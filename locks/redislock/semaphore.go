package redislock

import (
	"cmp"
	"context"
	_ "embed"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/locks"
)

var (
	//go:embed semaphore_acquire.lua
	semaphoreAcquireLua string
	//go:embed semaphore_renew.lua
	semaphoreRenewLua string
	//go:embed semaphore_release.lua
	semaphoreReleaseLua string
)

// semaphore is a semaphore with leases (tutorial 3.9.6). Redisson's RSemaphore is a number, so the
// permits of a dead process are lost for ever. In this semaphore, each taken permit is a member of
// a sorted set, with a deadline on Redis's clock. Its holder renews this deadline.
type semaphore struct {
	*primitive
	acquire, renew, release *redis.Script
	// For each key, only one waiter of this process sends requests to Redis.
	turns locks.FIFOMutex
}

func newSemaphore(p *primitive) *semaphore {
	return &semaphore{
		primitive: p, acquire: redis.NewScript(semaphoreAcquireLua),
		renew: redis.NewScript(semaphoreRenewLua), release: redis.NewScript(semaphoreReleaseLua),
	}
}

// semaphoreNames returns the keys of one semaphore. The last release deletes both keys.
func semaphoreNames(prefix, key string) (permits, total string) {
	base := prefix + "semaphore:{" + key + "}"
	return base + ":permits", base + ":total"
}

// Acquire returns locks.ErrMismatch if qty is less than 1 or more than total, or if another total
// is in use. A process serves its tasks in order of arrival, so small requests do not overtake a
// large one. Requests of different processes have no order. With a wait of 0, a task does not
// queue: it takes free permits before the waiters, like Java's tryAcquire.
func (s *semaphore) Acquire(ctx context.Context, r locks.Request, total, qty int) (*locks.Lock, error) {
	switch {
	case qty < 1 || qty > total:
		return nil, fmt.Errorf("%w: %d of %d permits of %s", locks.ErrMismatch, qty, total, r.Key)
	case ctx.Err() != nil:
		return nil, locks.NotAcquired(ctx, r.Key, r.Wait)
	}
	began, w := time.Now(), s.want(r, total, qty)
	if r.Wait == 0 {
		return s.take(ctx, r, began, w)
	}
	leave, err := s.turn(ctx, r, began, total)
	if err != nil {
		return nil, err
	}
	defer leave() // the next waiter may try when this request ends, before the permits are released
	return s.takeAsFirst(ctx, r, began, &s.turns, w)
}

// turn waits until the task is first in this process's queue. If the task must queue and its total
// differs from the total in use, turn returns locks.ErrMismatch at once.
func (s *semaphore) turn(ctx context.Context, r locks.Request, began time.Time, total int) (leave func(), err error) {
	if leave, err := s.turns.Take(ctx, r.Key, 0); err == nil {
		return leave, nil
	}
	_, size := semaphoreNames(s.prefix, r.Key)
	// An error of this GET can be ignored: the first waiter of the queue gets the same error.
	if inUse, err := s.client.Get(ctx, size).Int(); err == nil && inUse != total {
		return nil, mismatch(r.Key, inUse, total)
	}
	return s.turns.Take(ctx, r.Key, max(0, r.Wait-time.Since(began)))
}

func (s *semaphore) want(r locks.Request, total, qty int) want {
	permits, size := semaphoreNames(s.prefix, r.Key)
	keys, channel := []string{permits, size}, primitiveChannel(permits)
	token, lease := locks.Token(r.Owner), cmp.Or(r.Lease, s.lease)
	return want{
		channel: channel,
		try: func(ctx context.Context) (bool, time.Duration, error) {
			reply, err := s.acquire.Run(ctx, s.client, keys, token, lease.Milliseconds(), total, qty).Int64Slice()
			switch {
			case err != nil:
				return false, 0, err
			case reply[0] < 0:
				return false, 0, mismatch(r.Key, int(reply[1]), total)
			}
			return reply[0] == 1, time.Duration(reply[1]) * time.Millisecond, nil
		},
		grant: locks.Grant{
			Key: r.Key, Owner: r.Owner, Lease: lease,
			Renew: func(ctx context.Context) error {
				return run(ctx, s.client, s.renew, keys, token, lease.Milliseconds(), qty)
			},
			Release: func(ctx context.Context) error {
				return run(ctx, s.client, s.release, append(keys, channel), token, qty)
			},
		},
	}
}

func mismatch(key string, inUse, asked int) error {
	return fmt.Errorf("%w: %s has %d permits, not %d", locks.ErrMismatch, key, inUse, asked)
}
