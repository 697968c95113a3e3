package redislock

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/api"
	"oversell/locks"
)

// pollers returns all locks that poll, in the order of the catalogue (the list of strategies).
func pollers(c redis.UniversalClient) []locks.Locker {
	const lease = time.Minute
	return []locks.Locker{
		SetNX(c), SetNXExpire(c, lease), GetSet(c, lease), Expire(c, lease), UUID(c, lease), ThreadID(c, lease),
		Lua(c, lease), ReentrantLock(c, lease), Watchdog(c, lease),
	}
}

// poller creates the polling lock with this id, as a new replica does.
func poller(t *testing.T, c redis.UniversalClient, id string) locks.Locker {
	t.Helper()
	for _, l := range pollers(c) {
		if l.Card().ID == id {
			return l
		}
	}
	t.Fatalf("no polling lock %s", id)
	return nil
}

// free tries to acquire the lock, and releases it at once. It returns false if the lock is held.
func free(t *testing.T, l locks.Locker, key string) bool {
	t.Helper()
	h, err := l.Acquire(t.Context(), request(key, "another", 0, 0))
	if errors.Is(err, locks.ErrNotAcquired) {
		return false
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	return true
}

// TestCompareThenDelete lets the lease end between the comparison and the DEL of a release. In
// redis-uuid, the DEL then frees the next holder's lock. In redis-lua, one script compares and
// deletes.
func TestCompareThenDelete(t *testing.T) {
	for id, hits := range map[string]bool{"redis-uuid": true, "redis-lua": false} {
		t.Run(id, func(t *testing.T) {
			c := one(t)
			l, key := poller(t, c, id), newKey()
			first := acquire(t, l, request(key, "first", 0, time.Minute))
			paused := false
			ctx := locks.WithTracer(t.Context(), func(_ context.Context, e api.Event) {
				if e.Step != "compared" {
					return
				}
				paused = true
				c.PExpire(t.Context(), id+":"+key, time.Millisecond)
				acquire(t, l, request(key, "second", 20*time.Second, time.Minute))
			})
			if err := first.Release(ctx); err != nil {
				t.Error(err)
			}
			if paused != hits {
				t.Fatalf("the release stood between two commands: %v", paused)
			}
			if hits && !free(t, l, key) {
				t.Error("the DEL did not hit the second holder's lock")
			}
		})
	}
}

// TestReentryKeepsLease checks that a re-entry with a shorter lease, and its release, leave the lease
// of the outer grant as it is.
func TestReentryKeepsLease(t *testing.T) {
	c := one(t)
	for _, l := range []locks.Locker{ReentrantLock(c, time.Minute), Watchdog(c, time.Minute)} {
		key := newKey()
		acquire(t, l, request(key, "owner", 0, time.Minute))
		inner := acquire(t, l, request(key, "owner", 0, time.Second))
		left := func() time.Duration { return c.PTTL(t.Context(), l.Card().ID+":"+key).Val() }
		if left() < 30*time.Second || inner.Release(t.Context()) != nil || left() < 30*time.Second {
			t.Errorf("%s: %v are left of the outer lease", l.Card().ID, left())
		}
	}
}

// TestRenewWatchdog checks that the renewal of an inner grant does not shorten the lease of the
// outer grant.
func TestRenewWatchdog(t *testing.T) {
	c := one(t)
	l, key := Watchdog(c, time.Minute).(*redisWatchdog), newKey()
	name := "redis-watchdog:" + key
	acquire(t, l, request(key, "owner", 0, time.Minute))
	for _, test := range []struct {
		owner string
		lease time.Duration
		want  error
		left  time.Duration // the maximum; the minimum is half of it
	}{
		{"contender", time.Hour, locks.ErrNotHeld, time.Minute},
		{"owner", time.Second, nil, time.Minute},
		{"owner", time.Hour, nil, time.Hour},
	} {
		err := notHeldIfZero(l.renew.Run(t.Context(), c, []string{name}, test.owner, millis(test.lease)).Int64())
		left := c.PTTL(t.Context(), name).Val()
		if !errors.Is(err, test.want) || left > test.left || left < test.left/2 {
			t.Errorf("%s renews for %v: %v, %v left", test.owner, test.lease, err, left)
		}
	}
}

// TestTakeOver checks that exactly one of several clients takes over a lock whose deadline has
// passed. If the value is no deadline, the key is another program's, and no client may take it.
func TestTakeOver(t *testing.T) {
	c := one(t)
	for round := range 20 {
		key, passed := newKey(), time.Now().Add(-time.Second).UnixMilli()
		c.Set(t.Context(), "redis-getset:"+key, passed, 0)
		var winners atomic.Int64
		var tasks sync.WaitGroup
		for i := range 8 {
			tasks.Go(func() {
				if _, err := GetSet(c, time.Minute).Acquire(t.Context(), request(key, strconv.Itoa(i), 0, 0)); err == nil {
					winners.Add(1)
				}
			})
		}
		tasks.Wait()
		if n := winners.Load(); n != 1 {
			t.Errorf("round %d: %d winners", round, n)
		}
	}
	key := newKey()
	c.Set(t.Context(), "redis-getset:"+key, "yesterday", 0)
	if free(t, GetSet(c, time.Minute), key) {
		t.Error("a foreign key was taken")
	}
}

// TestThreads checks that a task gets the smallest free thread number of its key, from 1 on.
func TestThreads(t *testing.T) {
	var all threads
	enter := func(key string, want int) (leave func()) {
		t.Helper()
		got, leave := all.enter(key)
		if got != want {
			t.Errorf("number %d, want %d", got, want)
		}
		return leave
	}
	first, second := enter("a", 1), enter("a", 2)
	enter("b", 1)()
	first()
	third := enter("a", 1)
	enter("a", 3)()
	third()
	second()
	if len(all.busy) != 0 {
		t.Errorf("%v are left", all.busy)
	}
}

// TestOddNames uses keys, owners and leases that could break a command or a script.
func TestOddNames(t *testing.T) {
	const odd = "a b\r\n{x}*?'\"]] .. return 1 -- %s 锁\x00"
	for _, l := range pollers(one(t)) {
		for _, lease := range []time.Duration{0, time.Minute + time.Microsecond} {
			key := odd + newKey()
			h, err := l.Acquire(t.Context(), request(key, odd, 0, lease))
			if err != nil {
				t.Fatalf("%s: %v", l.Card().ID, err)
			}
			if free(t, l, key) {
				t.Errorf("%s: free while it is held", l.Card().ID)
			}
			if err := h.Release(t.Context()); err != nil || !free(t, l, key) {
				t.Errorf("%s: released: %v", l.Card().ID, err)
			}
		}
		// The lease is shorter than the 1 ms that Redis can represent.
		if h, err := l.Acquire(t.Context(), request(newKey(), "owner", 0, time.Nanosecond)); err != nil {
			t.Errorf("%s: a lease of 1 ns: %v", l.Card().ID, err)
		} else {
			_ = h.Release(t.Context())
		}
	}
}

// TestLateTake delays the command of a cancelled request. A lock that the command acquires must be
// released.
func TestLateTake(t *testing.T) {
	link := linkTo(t, servers.Addresses().Redis[0])
	c := client(t, servers.RedisURL(link.Addr()))
	for _, l := range pollers(c) {
		t.Run(l.Card().ID, func(t *testing.T) {
			if !free(t, l, newKey()) { // this loads the scripts
				t.Fatal("a new key is not free")
			}
			key := newKey()
			ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
			defer cancel()
			late(ctx, t, link, key, l, request(key, "late", time.Minute, time.Minute), func() {})
			if there := poller(t, one(t), l.Card().ID); !free(t, there, key) {
				t.Error("the late command's lock is still there")
			}
		})
	}
}
