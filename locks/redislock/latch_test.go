package redislock

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"oversell/locks"
)

// sets sets the count of a latch, and fails the test if the latch has a count already.
func sets(t *testing.T, p locks.Primitives, key string, count int) {
	t.Helper()
	if set, err := p.Latch.TrySet(t.Context(), key, count); err != nil || !set {
		t.Fatalf("set: %v, %v", set, err)
	}
}

// countsDown counts down once, and checks the count that is left.
func countsDown(t *testing.T, p locks.Primitives, key string, want int) {
	t.Helper()
	if left, err := p.Latch.CountDown(t.Context(), key); err != nil || left != want {
		t.Fatalf("%d left, %v; want %d", left, err, want)
	}
}

// TestLatchOpen checks a latch that was never set, and one that has opened. Await returns at once,
// the count stays 0, and both can be set.
func TestLatchOpen(t *testing.T) {
	c, all, key := one(t), threeReplicas(t, time.Hour), newKey()
	for range 2 {
		if err := all[0].Latch.Await(t.Context(), request(key, "", 0, 0)); err != nil {
			t.Error(err)
		}
		countsDown(t, all[1], key, 0)
		nothingLeft(t, c, key)
		sets(t, all[1], key, 1)
		countsDown(t, all[2], key, 0)
	}
	for _, count := range []int{-1, 0, latchMost + 1} {
		if set, err := all[0].Latch.TrySet(t.Context(), key, count); err == nil || set {
			t.Errorf("set to %d: %v, %v", count, set, err)
		}
	}
	sets(t, all[0], key, latchMost)
	countsDown(t, all[0], key, latchMost-1)
	if err := all[0].Clear(t.Context()); err != nil {
		t.Fatal(err)
	}
	nothingLeft(t, c, key)
}

// TestLatchSetAnew checks that the waiters of a latch return when it opens, even if it is set again
// before their next request.
func TestLatchSetAnew(t *testing.T) {
	c, all, key := one(t), threeReplicas(t, time.Hour), newKey()
	name, channel := latchNames(primitivePrefix, key)
	script, err := c.ScriptLoad(t.Context(), latchCountLua).Result()
	if err != nil {
		t.Fatal(err)
	}
	for range 20 {
		sets(t, all[0], key, 1)
		old := c.HGet(t.Context(), name, "id").Val()
		waiter := beside(func() (*locks.Lock, error) {
			return nil, all[1].Latch.Await(t.Context(), request(key, "", enough, 0))
		})
		soon(t, "it waits", func() bool { return waitersAt(all[1], channel) == 1 })
		pipe := c.TxPipeline() // in one transaction, so that no waiter reads the latch in between
		pipe.EvalSha(t.Context(), script, []string{name, channel, primitivePrefix + latches})
		pipe.HSet(t.Context(), name, "left", 1, "id", "after "+old)
		if _, err := pipe.Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := result(t, "the waiter", waiter); err != nil {
			t.Error(err)
		}
		countsDown(t, all[0], key, 0)
	}
	nothingLeft(t, c, key)
}

// TestLatchTogether calls CountDown a hundred times at once. The calls must return a hundred
// different counts. A waiter that is cancelled, or whose wait is over, returns ErrNotAcquired and
// leaves no goroutine.
func TestLatchTogether(t *testing.T) {
	c, all, key := one(t), threeReplicas(t, time.Hour), newKey()
	warm(t, all, key)
	before := runtime.NumGoroutine()
	sets(t, all[0], key, 100)
	ctx, cancel := context.WithCancel(t.Context())
	fickle := beside(func() (*locks.Lock, error) { return nil, all[1].Latch.Await(ctx, request(key, "", enough, 0)) })
	_, channel := latchNames(primitivePrefix, key)
	soon(t, "it waits", func() bool { return waitersAt(all[1], channel) == 1 })
	cancel()
	_, err := result(t, "a cancelled waiter", fickle)
	wantNot(t, "a cancelled waiter", nil, err, context.Canceled)
	wantNot(t, "a cancelled waiter", nil, err, locks.ErrNotAcquired)
	wantNot(t, "a short wait", nil, all[1].Latch.Await(t.Context(), request(key, "", 100*time.Millisecond, 0)), locks.ErrNotAcquired)
	if _, err := all[0].Latch.CountDown(ctx, key); !errors.Is(err, locks.ErrNotAcquired) {
		t.Errorf("a count of a cancelled request: %v", err)
	}
	var mu sync.Mutex
	var answers []int
	var tasks sync.WaitGroup
	for i := range 100 {
		tasks.Go(func() {
			left, err := all[i%3].Latch.CountDown(t.Context(), key)
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			answers = append(answers, left)
		})
	}
	tasks.Wait()
	slices.Sort(answers)
	for i, left := range answers {
		if left != i {
			t.Fatalf("the answers are %v", answers)
		}
	}
	nothingLeft(t, c, key)
	soon(t, "the goroutines have ended", func() bool { return runtime.NumGoroutine() <= before })
}

// waitersAt returns how many waiters of the process p wait for a message on the channel.
func waitersAt(p locks.Primitives, channel string) int {
	s := p.Latch.(*latch).notifier //nolint:forcetypeassert // ours
	s.mu.Lock()
	defer s.mu.Unlock()
	if sub := s.subs[channel]; sub != nil {
		return sub.waiters
	}
	return 0
}

// TestFullLatches checks the limit on the number of latches, which do not expire.
func TestFullLatches(t *testing.T) {
	p, name := Primitives(one(t), "", time.Minute), newKey()
	t.Cleanup(func() { _ = p.Clear(context.Background()) })
	key := func(i int) string { return fmt.Sprintf("%s-%d", name, i) }
	full := 0
	for i := 0; full == 0; i++ { // other tests may have left latches
		switch _, err := p.Latch.TrySet(t.Context(), key(i), 2); {
		case errors.Is(err, locks.ErrFull):
			full = i
		case err != nil || i >= locks.MaxNames:
			t.Fatalf("latch %d: %v", i, err)
		}
	}
	if set, err := p.Latch.TrySet(t.Context(), key(0), 2); err != nil || set {
		t.Errorf("one that counts: %v, %v", set, err)
	}
	countsDown(t, p, key(0), 1)
	countsDown(t, p, key(0), 0)
	sets(t, p, key(full), 1)
	if err := p.Clear(t.Context()); err != nil {
		t.Fatal(err)
	}
	sets(t, p, key(full), 1)
	countsDown(t, p, key(full), 0)
}
