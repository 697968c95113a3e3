package redislock

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/locks"
	"oversell/trial/lockstest"
)

// TestAcquireTwice sends the request of one acquisition twice. Both requests have the same token,
// so they must get the same fence.
func TestAcquireTwice(t *testing.T) {
	c := one(t)
	l := bare(c)
	key := newKey()
	first, _, err := l.try(t.Context(), key, "token", time.Minute)
	if err != nil || first != 1 {
		t.Fatalf("fence %d, %v", first, err)
	}
	again, _, err := l.try(t.Context(), key, "token", time.Minute)
	if err != nil || again != first {
		t.Errorf("the same token again: fence %d, %v; want fence %d", again, err, first)
	}
	contender, busy, err := l.try(t.Context(), key, "contender", time.Minute)
	if err != nil || contender != 0 || busy <= 0 || busy > time.Minute {
		t.Errorf("a contender: fence %d, busy for %v, %v", contender, busy, err)
	}
	if err := l.unlock(t.Context(), key, "contender"); !errors.Is(err, locks.ErrNotHeld) {
		t.Errorf("release by a contender: %v", err)
	}
	if err := l.unlock(t.Context(), key, "token"); err != nil {
		t.Error(err)
	}
	if next, _, err := l.try(t.Context(), key, "contender", time.Minute); err != nil || next != 2 {
		t.Errorf("the next grant: fence %d, %v", next, err)
	}
}

// bare returns the lock without its decorators, such as the queue.
func bare(c redis.UniversalClient) *redisLock { return newRedisLock(c, time.Minute) }

// TestRenewScript checks that a renewal restarts the lease, and that only the holder can renew.
func TestRenewScript(t *testing.T) {
	c := one(t)
	l := bare(c)
	key := newKey()
	lock, _, _ := redisNames(key)
	if _, _, err := l.try(t.Context(), key, "token", time.Minute); err != nil {
		t.Fatal(err)
	}
	renew := func(token string) error {
		return notHeldIfZero(l.renew.Run(t.Context(), c, []string{lock}, token, time.Hour.Milliseconds()).Int64())
	}
	if err := renew("contender"); !errors.Is(err, locks.ErrNotHeld) {
		t.Errorf("renewed by a contender: %v", err)
	}
	if ttl := c.PTTL(t.Context(), lock).Val(); ttl > time.Minute {
		t.Errorf("a contender's renewal made the lease %v", ttl)
	}
	if err := renew("token"); err != nil {
		t.Error(err)
	}
	if ttl := c.PTTL(t.Context(), lock).Val(); ttl <= time.Minute {
		t.Errorf("after the renewal the lease is %v", ttl)
	}
}

// TestRaiseScript checks that the script returns a fence above the floor (a given minimum) and
// above the fence counter. Only the holder may get a new fence.
func TestRaiseScript(t *testing.T) {
	c := one(t)
	for _, test := range []struct {
		name                 string
		counter, floor, want int64
	}{
		{"counter lost", 1, 41, 42},
		{"counter above the floor", 50, 41, 51},
		{"a large one", 1, 1 << 50, 1<<50 + 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			l := bare(c)
			key := newKey()
			lock, counter, _ := redisNames(key)
			if _, _, err := l.try(t.Context(), key, "token", time.Minute); err != nil {
				t.Fatal(err)
			}
			c.Set(t.Context(), counter, test.counter, 0)
			raise := func(token string) (int64, error) {
				return l.raise.Run(t.Context(), c, []string{lock, counter}, token, test.floor).Int64()
			}
			if got, err := raise("contender"); err != nil || got != 0 {
				t.Errorf("raised for a contender: %d, %v", got, err)
			}
			got, err := raise("token")
			if err != nil || got != test.want {
				t.Errorf("raised to %d, %v; want %d", got, err, test.want)
			}
			if err := l.unlock(t.Context(), key, "token"); err != nil {
				t.Fatal(err)
			}
			if next, _, err := l.try(t.Context(), key, "next", time.Minute); err != nil || next != test.want+1 {
				t.Errorf("the next grant has fence %d, %v; want %d", next, err, test.want+1)
			}
		})
	}
}

// TestKeys checks the keys and the channel. They are Redisson's, so that a Java service can share
// the lock.
func TestKeys(t *testing.T) {
	c := one(t)
	key := newKey()
	h := acquire(t, Redis(c, time.Minute), request(key, "owner", 0, 0))
	fields, err := c.HGetAll(t.Context(), "redis:"+key).Result()
	if err != nil || len(fields) != 1 {
		t.Fatalf("%v, %v", fields, err)
	}
	for token, count := range fields {
		if !strings.HasPrefix(token, "owner:") || count != "1" {
			t.Errorf("the hash holds %s: %s", token, count)
		}
	}
	channel := c.Subscribe(t.Context(), "redisson_lock__channel:{redis:"+key+"}")
	defer func() { _ = channel.Close() }()
	if _, err := channel.Receive(t.Context()); err != nil { // the subscription
		t.Fatal(err)
	}
	if err := h.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	message, err := channel.ReceiveMessage(ctx)
	if err != nil || message.Payload != "0" {
		t.Errorf("the release said %v, %v", message, err)
	}
}

// TestForeignKey waits for a key without an expiry, which another program created. The waiter must
// not take the key, and must not poll.
func TestForeignKey(t *testing.T) {
	c := one(t)
	key := newKey()
	c.HSet(t.Context(), "redis:"+key, "foreign", 1)
	before := commands(t, c)
	_, err := Redis(c, time.Minute).Acquire(t.Context(), request(key, "owner", 300*time.Millisecond, 0))
	if !errors.Is(err, locks.ErrNotAcquired) {
		t.Errorf("%v, want %v", err, locks.ErrNotAcquired)
	}
	if n := commands(t, c) - before; n > 20 {
		t.Errorf("one waiter for a key that is not released sent %d scripts", n)
	}
}

// commands counts the scripts that the server has run.
func commands(t *testing.T, c redis.UniversalClient) int {
	t.Helper()
	stats, err := c.Info(t.Context(), "commandstats").Result()
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for line := range strings.Lines(stats) {
		if calls, ok := strings.CutPrefix(line, "cmdstat_evalsha:calls="); ok {
			for _, digit := range calls[:strings.Index(calls, ",")] {
				n = n*10 + int(digit-'0')
			}
		}
	}
	return n
}

// TestLateAcquire delays the script of a request until the request is cancelled. If the script then
// acquires the lock, Acquire must release the lock.
func TestLateAcquire(t *testing.T) {
	link := linkTo(t, servers.Addresses().Redis[0])
	c := client(t, servers.RedisURL(link.Addr()))
	l := bare(c)
	key := newKey()
	if err := acquire(t, l, request(key, "first", 0, 0)).Release(t.Context()); err != nil { // this loads the scripts
		t.Fatal(err)
	}
	// The driver ignores a cancellation, but not a deadline.
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	late(ctx, t, link, l.acquire.Hash(), l, request(key, "late", time.Minute, time.Minute), func() {})
	acquire(t, Redis(one(t), time.Minute), request(key, "next", 20*time.Second, 0))
}

// late runs an acquisition. It delays the next message that contains text until the context of the
// acquisition has ended. arrived is called when it begins to do so.
func late(ctx context.Context, t *testing.T, link *lockstest.Link, text string, l locks.Locker, r locks.Request, arrived func()) {
	t.Helper()
	held, free := link.HoldNext(text)
	done := make(chan error, 1)
	go func() {
		_, err := l.Acquire(ctx, r)
		done <- err
	}()
	select {
	case <-held:
		arrived()
		<-ctx.Done()
	case <-ctx.Done():
	}
	select {
	case err := <-done: // it does not wait for the answer: its clean-up is over
		done <- err
	case <-time.After(300 * time.Millisecond):
	}
	free()
	if err := <-done; !errors.Is(err, locks.ErrNotAcquired) || !errors.Is(err, ctx.Err()) {
		t.Errorf("%v, want %v", err, locks.ErrNotAcquired)
	}
}

func linkTo(t *testing.T, url string) *lockstest.Link {
	t.Helper()
	o, err := redis.ParseURL(url)
	if err != nil {
		t.Fatal(err)
	}
	link, err := lockstest.NewLink(t.Context(), o.Addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = link.Close() })
	return link
}
