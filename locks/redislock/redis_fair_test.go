package redislock

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/lab/rig"
	"oversell/lab/rig/rigtest"
	"oversell/locks"
)

// queued returns when the key's queue in Redis has exactly want waiters.
func queued(t *testing.T, c redis.UniversalClient, key string, want int64) {
	t.Helper()
	soon(t, fmt.Sprintf("%d are in the queue", want), func() bool {
		return c.ZCard(t.Context(), fairNames(key).queue).Val() == want
	})
}

// TestFairNoOvertaking checks that a free lock is for the first waiter in the queue, even if
// another request arrives before that waiter is woken.
func TestFairNoOvertaking(t *testing.T) {
	c, key := one(t), newKey()
	l, n := newFair(c, time.Minute), fairNames(key)
	holder := acquire(t, l, request(key, "holder", 0, 0))
	if fence, _, ahead, err := l.try(t.Context(), request(key, "", time.Minute, 0), "first", time.Minute); fence != 0 || ahead != 0 || err != nil {
		t.Fatalf("the first: fence %d, %d before it, %v", fence, ahead, err)
	}
	if err := holder.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Acquire(t.Context(), request(key, "pushy", 0, 0)); !errors.Is(err, locks.ErrNotAcquired) {
		t.Errorf("one try, before the first's turn: %v", err)
	}
	if waiting := c.ZRange(t.Context(), n.queue, 0, -1).Val(); !slices.Equal(waiting, []string{"first"}) {
		t.Errorf("the queue is %v", waiting)
	}
	for range 2 { // the second try is as after a lost answer
		if fence, _, _, err := l.try(t.Context(), request(key, "", time.Minute, 0), "first", time.Minute); fence != 2 || err != nil {
			t.Errorf("the first, on its turn: fence %d, %v", fence, err)
		}
	}
}

// TestFairDeadWaiters checks that two dead waiters delay the next waiter by fairLife only once.
func TestFairDeadWaiters(t *testing.T) {
	c, key := one(t), newKey()
	l, n := newFair(c, time.Minute), fairNames(key)
	holder := acquire(t, l, request(key, "holder", 0, 0))
	for _, dead := range []string{"dead-1", "dead-2"} {
		if _, _, _, err := l.try(t.Context(), request(key, "", time.Minute, 0), dead, time.Minute); err != nil {
			t.Fatal(err)
		}
	}
	got := make(chan error, 1)
	go func() {
		h, err := l.Acquire(t.Context(), request(key, "next", time.Minute, 0))
		if err == nil {
			err = h.Release(t.Context())
		}
		got <- err
	}()
	queued(t, c, key, 3)
	// Until this deadline on the clock of Redis, the dead waiters look alive.
	until, err := strconv.ParseInt(c.HGet(t.Context(), n.deadlines, "dead-1").Val(), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	if err := holder.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-got; err != nil {
		t.Fatal(err)
	}
	// The documented bound is fairBeat after the deadline. A busy machine gets 5 s more.
	late := c.Time(t.Context()).Val().Sub(time.UnixMilli(until))
	if late < 0 || late > fairBeat+5*time.Second {
		t.Errorf("granted %v after the dead one's deadline, want %v at most", late, fairBeat)
	}
}

// TestFairLosesNoLivingWaiter checks that a refresh extends the deadline of a waiter, and that the
// waiter keeps its position. A waiter that lost its position queues again.
func TestFairLosesNoLivingWaiter(t *testing.T) {
	c, key := one(t), newKey()
	l, n := newFair(c, time.Minute), fairNames(key)
	holder := acquire(t, l, request(key, "holder", 0, 0))
	var all sync.WaitGroup
	for i := range 2 {
		all.Go(func() {
			h, err := l.Acquire(t.Context(), request(key, fmt.Sprintf("waiter-%d", i), time.Minute, 0))
			if err != nil {
				t.Error(err)
				return
			}
			_ = h.Release(t.Context())
		})
		queued(t, c, key, int64(i+1))
	}
	queue := func() []string { return c.ZRange(t.Context(), n.queue, 0, -1).Val() }
	before := queue()
	first := c.HGet(t.Context(), n.deadlines, before[1]).Val()
	soon(t, "the second is refreshed", func() bool { return c.HGet(t.Context(), n.deadlines, before[1]).Val() > first })
	if now := queue(); !slices.Equal(now, before) {
		t.Errorf("the queue was %v, is %v", before, now)
	}
	c.ZRem(t.Context(), n.queue, before[0])
	soon(t, "the one that lost its place is the last", func() bool { return slices.Equal(queue(), []string{before[1], before[0]}) })
	// This deletes the lock without a message. The next refresh must wake the first waiter.
	c.Del(t.Context(), n.lock)
	all.Wait()
	if err := holder.Release(t.Context()); !errors.Is(err, locks.ErrNotHeld) {
		t.Errorf("the release of a lock that was wiped: %v", err)
	}
}

// TestFairRoundTrips checks that a grant needs the same number of requests with a thousand waiters
// as with ten.
func TestFairRoundTrips(t *testing.T) {
	t.Parallel()
	r := rigtest.Start(t, rig.Config{Redis: 1}) // no other test changes its statistics
	for _, waiters := range []int{10, 100, 1000} {
		t.Run(strconv.Itoa(waiters), func(t *testing.T) {
			c := client(t, r.Addresses().Redis[0])
			key := newKey()
			replicas := []locks.Locker{
				Fair(client(t, r.Addresses().Redis[0]), time.Minute), Fair(client(t, r.Addresses().Redis[0]), time.Minute),
			}
			holder := acquire(t, replicas[0], request(key, "holder", 0, 0))
			before := sent(t, c)
			var all sync.WaitGroup
			defer all.Wait() // even if the test fails before
			for i := range waiters {
				all.Go(func() {
					h, err := replicas[i%2].Acquire(t.Context(), request(key, strconv.Itoa(i), 3*time.Minute, 0))
					if err != nil {
						t.Error(err)
						return
					}
					_ = h.Release(t.Context())
				})
			}
			queued(t, c, key, int64(waiters))
			if err := holder.Release(t.Context()); err != nil {
				t.Fatal(err)
			}
			all.Wait()
			each := 1 + float64(sent(t, c)-before)/float64(waiters) // 1 for a later unsubscription
			t.Logf("%.1f commands for each grant", each)
			if each > 6 {
				t.Errorf("%.1f commands for each grant, want 6 at most", each)
			}
		})
	}
}

// sent returns the number of scripts and subscriptions that all clients have sent to the server.
func sent(t *testing.T, c redis.UniversalClient) int {
	t.Helper()
	stats, err := c.Info(t.Context(), "commandstats").Result()
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for line := range strings.Lines(stats) {
		for _, command := range []string{"eval", "evalsha", "subscribe"} {
			if calls, ok := strings.CutPrefix(line, "cmdstat_"+command+":calls="); ok {
				count, _, _ := strings.Cut(calls, ",")
				k, err := strconv.Atoi(count)
				if err != nil {
					t.Fatal(err)
				}
				n += k
			}
		}
	}
	return n
}
