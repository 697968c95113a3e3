package redislock

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/locks"
)

// contended returns the strategies that use the Redis keys of the strategy redis, by their ids.
func contended() map[string]func(redis.UniversalClient, time.Duration) locks.Locker {
	return map[string]func(redis.UniversalClient, time.Duration) locks.Locker{"redis": Redis, "cohort-redis": CohortRedis}
}

// TestNextWaiterLeaves lets the next waiter of a process give up at the moment of a release. Then a
// waiter in another process must be granted the lock at once, not when the lease expires.
func TestNextWaiterLeaves(t *testing.T) {
	for id, lock := range contended() {
		t.Run(id, func(t *testing.T) {
			here, there := lock(one(t), time.Hour), lock(one(t), time.Hour)
			for round := range 25 {
				nextWaiterLeaves(t, here, there, round)
			}
		})
	}
}

func nextWaiterLeaves(t *testing.T, here, there locks.Locker, round int) {
	t.Helper()
	key := newKey()
	holder := acquire(t, here, request(key, "holder", 0, 0))
	ctx, cancel := context.WithCancel(t.Context())
	var tasks sync.WaitGroup
	tasks.Go(func() {
		h, err := here.Acquire(ctx, request(key, "leaves", time.Minute, 0))
		if err == nil {
			err = h.Release(ctx)
		}
		if err != nil && !errors.Is(err, locks.ErrNotAcquired) {
			t.Error(err)
		}
	})
	tasks.Go(func() {
		h, err := there.Acquire(t.Context(), request(key, "elsewhere", 20*time.Second, 0))
		if err == nil {
			err = h.Release(t.Context())
		}
		if err != nil {
			t.Errorf("round %d: %v", round, err)
		}
	})
	time.Sleep(time.Duration(round%5) * time.Millisecond)
	tasks.Go(cancel)
	if err := holder.Release(t.Context()); err != nil {
		t.Error(err)
	}
	tasks.Wait()
}

// TestNoReplicaStarves checks that a task gets the lock although ten tasks of another process try.
func TestNoReplicaStarves(t *testing.T) {
	for id, lock := range contended() {
		t.Run(id, func(t *testing.T) {
			many, few := lock(one(t), time.Hour), lock(one(t), time.Hour)
			key := newKey()
			var granted atomic.Int64 // grants to the ten tasks
			ctx, cancel := context.WithCancel(t.Context())
			var tasks sync.WaitGroup
			for i := range 10 {
				tasks.Go(func() {
					for {
						h, err := many.Acquire(ctx, request(key, fmt.Sprint(i), time.Minute, 0))
						if err != nil {
							return
						}
						granted.Add(1)
						_ = h.Release(ctx)
					}
				})
			}
			const turns = 20
			began := time.Now()
			for range turns {
				h, err := few.Acquire(t.Context(), request(key, "single", time.Minute, 0))
				if err != nil {
					t.Fatal(err)
				}
				if err := h.Release(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			t.Logf("%d grants to the ten tasks, %d to the single one, in %v", granted.Load(), turns, time.Since(began))
			cancel()
			tasks.Wait()
		})
	}
}
