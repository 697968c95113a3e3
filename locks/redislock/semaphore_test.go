package redislock

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/locks"
)

// permitsTaken returns the number of permits in Redis, including expired ones.
func permitsTaken(t *testing.T, c redis.UniversalClient, key string) int64 {
	t.Helper()
	permits, _ := semaphoreNames(primitivePrefix, key)
	return c.ZCard(t.Context(), permits).Val()
}

// TestDeadPermit checks that the permits of a dead holder expire, although no message announces
// this. A living holder must keep its permits.
func TestDeadPermit(t *testing.T) {
	const lease = 500 * time.Millisecond
	c, all, key := one(t), threeReplicas(t, time.Hour), newKey()
	permits, total := semaphoreNames(primitivePrefix, key)
	h, err := all[0].Semaphore.Acquire(t.Context(), request(key, "living", 0, lease), 3, 1)
	living := given(t, h, err)
	die := func() {
		t.Helper()
		script := redis.NewScript(semaphoreAcquireLua)
		if err := script.Run(t.Context(), c, []string{permits, total}, locks.Token("dead"), lease.Milliseconds(), 3, 2).Err(); err != nil {
			t.Fatal(err)
		}
	}
	die()
	if n := permitsTaken(t, c, key); n != 3 {
		t.Fatalf("%d permits are taken", n)
	}
	h, err = all[1].Semaphore.Acquire(t.Context(), request(key, "next", enough, 0), 3, 2)
	next := given(t, h, err)
	if err := living.Verify(); err != nil {
		t.Errorf("the living holder: %v", err)
	}
	if n := permitsTaken(t, c, key); n != 3 {
		t.Errorf("%d permits are taken", n)
	}
	giveBack(t, living, next)
	if err := next.Release(t.Context()); !errors.Is(err, locks.ErrNotHeld) {
		t.Errorf("released twice: %v", err)
	}
	nothingLeft(t, c, key)
	die()
	nothingLeft(t, c, key) // the keys expire without a release
}

// TestSemaphoreSizes checks that the first user sets the total until the last permit is released.
// The error for another total has both numbers.
func TestSemaphoreSizes(t *testing.T) {
	c, all, key := one(t), threeReplicas(t, time.Hour), newKey()
	for _, qty := range []int{-1, 0, 4} {
		h, err := all[0].Semaphore.Acquire(t.Context(), request(key, "greedy", time.Minute, 0), 3, qty)
		wantNot(t, fmt.Sprint(qty, " of 3"), h, err, locks.ErrMismatch)
	}
	h, err := all[0].Semaphore.Acquire(t.Context(), request(key, "first", 0, 0), 3, 2)
	first := given(t, h, err)
	h, err = all[1].Semaphore.Acquire(t.Context(), request(key, "too many", 0, 0), 3, 2)
	wantNot(t, "all or none", h, err, locks.ErrNotAcquired)
	h, err = all[1].Semaphore.Acquire(t.Context(), request(key, "last", 0, 0), 3, 1)
	last := given(t, h, err)
	waiter := beside(func() (*locks.Lock, error) {
		return all[2].Semaphore.Acquire(t.Context(), request(key, "waiter", enough, 0), 3, 3)
	})
	_, total := semaphoreNames(primitivePrefix, key)
	listening(t, c, primitiveChannel(total), 1)
	for i, wait := range []time.Duration{0, time.Minute} { // at once, even with a waiter
		h, err := all[1+i].Semaphore.Acquire(t.Context(), request(key, "other", wait, 0), 5, 1)
		wantNot(t, "another total", h, err, locks.ErrMismatch)
		if said := fmt.Sprint(err); !strings.Contains(said, "3") || !strings.Contains(said, "5") {
			t.Errorf("it says %q", said)
		}
	}
	giveBack(t, first)
	if len(waiter) > 0 {
		t.Error("granted 3 where 1 was taken")
	}
	giveBack(t, last)
	h, err = result(t, "the waiter", waiter)
	giveBack(t, given(t, h, err))
	h, err = all[1].Semaphore.Acquire(t.Context(), request(key, "other", 0, 0), 5, 5)
	giveBack(t, given(t, h, err))
	nothingLeft(t, c, key)
}

// TestSemaphoreOrder checks that, within a process, a small request does not overtake a large one.
func TestSemaphoreOrder(t *testing.T) {
	c, all, key := one(t), threeReplicas(t, time.Hour), newKey()
	s := all[0].Semaphore.(*semaphore) //nolint:forcetypeassert // ours
	permits, _ := semaphoreNames(primitivePrefix, key)
	var holds []*locks.Lock
	for range 2 {
		h, err := s.Acquire(t.Context(), request(key, "holder", 0, 0), 2, 1)
		holds = append(holds, given(t, h, err))
	}
	large := beside(func() (*locks.Lock, error) { return s.Acquire(t.Context(), request(key, "large", enough, 0), 2, 2) })
	listening(t, c, primitiveChannel(permits), 1)
	small := beside(func() (*locks.Lock, error) { return s.Acquire(t.Context(), request(key, "small", enough, 0), 2, 1) })
	soon(t, "the small request waits", func() bool { return s.turns.Waiting(key) > 0 })
	giveBack(t, holds[0])
	known := s.notifier.sequence(primitiveChannel(permits))
	c.Publish(t.Context(), primitiveChannel(permits), "0")
	soon(t, "the message has arrived", func() bool { return s.notifier.sequence(primitiveChannel(permits)) > known })
	if len(small) > 0 {
		t.Error("a small request overtook the large one")
	}
	giveBack(t, holds[1])
	h, err := result(t, "the large one", large)
	first := given(t, h, err)
	if len(small) > 0 {
		t.Error("granted 1 where all are taken")
	}
	giveBack(t, first)
	h, err = result(t, "the small one", small)
	giveBack(t, given(t, h, err))
	nothingLeft(t, c, key)
}

// TestSemaphoreThousand lets a thousand tasks request the only permit, each with a wait of one
// second. A task that gets no permit returns ErrNotAcquired. Neither a key nor a goroutine may
// stay.
func TestSemaphoreThousand(t *testing.T) {
	c, all, key := one(t), threeReplicas(t, time.Hour), newKey()
	warm(t, all, key)
	before := runtime.NumGoroutine()
	scripts := commands(t, c)
	var inside, served, refused atomic.Int64
	var tasks sync.WaitGroup
	for i := range 1000 {
		tasks.Go(func() {
			h, err := all[i%3].Semaphore.Acquire(t.Context(), request(key, fmt.Sprint("task", i), time.Second, 0), 1, 1)
			switch {
			case errors.Is(err, locks.ErrNotAcquired):
				refused.Add(1)
			case err != nil:
				t.Error(err)
			default:
				if n := inside.Add(1); n > 1 {
					t.Errorf("%d inside", n)
				}
				served.Add(1)
				time.Sleep(20 * time.Millisecond)
				inside.Add(-1)
				giveBack(t, h)
			}
		})
	}
	tasks.Wait()
	if served.Load() == 0 || refused.Load() == 0 || served.Load()+refused.Load() != 1000 {
		t.Errorf("%d served, %d refused", served.Load(), refused.Load())
	}
	// Each task tries once when it becomes the first waiter of its process. For each served task,
	// Redis executes its release, and one more try by the first waiter of each process. If all
	// waiters tried after each release, there would be ten times as many scripts.
	if n := int64(commands(t, c) - scripts); n > 1000+4*served.Load() {
		t.Errorf("%d scripts for %d served", n, served.Load())
	}
	nothingLeft(t, c, key)
	soon(t, "the goroutines have ended", func() bool { return runtime.NumGoroutine() <= before })
	h, err := all[0].Semaphore.Acquire(t.Context(), request(key, "after", 0, 0), 1, 1)
	giveBack(t, given(t, h, err))
}

// TestSemaphoreCancel cancels the first waiter of the queue, or a later one. No data may stay.
func TestSemaphoreCancel(t *testing.T) {
	c, all, key := one(t), threeReplicas(t, time.Hour), newKey()
	h, err := all[0].Semaphore.Acquire(t.Context(), request(key, "holder", 0, 0), 1, 1)
	holder := given(t, h, err)
	ctx, cancel := context.WithCancel(t.Context())
	var waiters []<-chan outcome
	for i := range 6 {
		waiters = append(waiters, beside(func() (*locks.Lock, error) {
			return all[i%3].Semaphore.Acquire(ctx, request(key, fmt.Sprint(i), enough, 0), 1, 1)
		}))
	}
	permits, _ := semaphoreNames(primitivePrefix, key)
	listening(t, c, primitiveChannel(permits), 3)
	cancel()
	for _, w := range waiters {
		h, err := result(t, "a cancelled waiter", w)
		wantNot(t, "a cancelled waiter", h, err, locks.ErrNotAcquired)
		wantNot(t, "a cancelled waiter", h, err, context.Canceled)
	}
	if n := permitsTaken(t, c, key); n != 1 {
		t.Errorf("%d permits are taken", n)
	}
	giveBack(t, holder)
	nothingLeft(t, c, key)
}
