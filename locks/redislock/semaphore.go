package redislock

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/locks"
	"oversell/stock"
)

//go:embed semaphore_acquire.lua
var semaphoreAcquireLua string

//go:embed semaphore_renew.lua
var semaphoreRenewLua string

//go:embed semaphore_release.lua
var semaphoreReleaseLua string

// semaphore is the tutorial's 3.9.6 with leases: Redisson's RSemaphore is a
// number, and what a dead process took from it is gone for good. Here every
// permit that is taken is a member of a sorted set, with its deadline by Redis's
// clock, and its holder renews it.
type semaphore struct {
	*primitive
	acquire, renew, release *redis.Script
	// Of all that wait in this process, one asks Redis.
	turns locks.FIFOMutex
}

func newSemaphore(p *primitive) *semaphore {
	return &semaphore{
		primitive: p, acquire: redis.NewScript(semaphoreAcquireLua),
		renew: redis.NewScript(semaphoreRenewLua), release: redis.NewScript(semaphoreReleaseLua),
	}
}

// semaphoreNames are the keys of one semaphore. Both go with the last permit.
func semaphoreNames(key string) (permits, total string) {
	base := primitivePrefix + "semaphore:{" + key + "}"
	return base + ":permits", base + ":total"
}

// Acquire takes qty permits of total. More than there are, or another total
// than the one in use, is locks.ErrMismatch.
//
// A process serves its tasks in order of arrival, and a large wish is not
// overtaken by small ones behind it. Processes compete. With a wait of 0 a task
// takes what is free now, past those who wait, as Java's tryAcquire does.
func (s *semaphore) Acquire(ctx context.Context, r locks.Request, total, qty int) (*locks.Lock, error) {
	switch {
	case qty < 1 || qty > total:
		return nil, fmt.Errorf("%w: %d of %d permits of %s", locks.ErrMismatch, qty, total, r.Key)
	case ctx.Err() != nil:
		return nil, locks.NotAcquired(ctx, r.Key, r.Wait)
	}
	began, w := time.Now(), s.wish(r, total, qty)
	if r.Wait == 0 {
		return s.take(ctx, r, began, w)
	}
	leave, err := s.turn(ctx, r, began, total)
	if err != nil {
		return nil, err
	}
	defer leave() // the permits stay: the turn is only to ask for them
	h, err := s.take(ctx, r, began, w)
	if errors.Is(err, stock.ErrUnavailable) {
		s.turns.Fail(r.Key, err)
	}
	return h, err
}

// turn waits to be the first of this process. Who can't be served at all learns
// it before the line, not at its end.
func (s *semaphore) turn(ctx context.Context, r locks.Request, began time.Time, total int) (leave func(), err error) {
	if leave, err := s.turns.Take(ctx, r.Key, 0); err == nil {
		return leave, nil
	}
	_, size := semaphoreNames(r.Key)
	// Without an answer, stand in line: its first learns what ails Redis.
	if inUse, err := s.client.Get(ctx, size).Int(); err == nil && inUse != total {
		return nil, mismatch(r.Key, inUse, total)
	}
	return s.turns.Take(ctx, r.Key, max(0, r.Wait-time.Since(began)))
}

func (s *semaphore) wish(r locks.Request, total, qty int) wish {
	permits, size := semaphoreNames(r.Key)
	keys, channel := []string{permits, size}, primitiveChannel(permits)
	token, lease := locks.Token(r.Owner), s.life(r)
	return wish{
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
				return held(s.renew.Run(ctx, s.client, keys, token, lease.Milliseconds(), qty).Int64())
			},
			Release: func(ctx context.Context) error {
				return held(s.release.Run(ctx, s.client, append(keys, channel), token, qty).Int64())
			},
		},
	}
}

func mismatch(key string, inUse, asked int) error {
	return fmt.Errorf("%w: %s has %d permits, not %d", locks.ErrMismatch, key, inUse, asked)
}
