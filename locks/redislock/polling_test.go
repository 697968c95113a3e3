package redislock

import (
	"context"
	"errors"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/api"
	"oversell/locks"
	"oversell/stock"
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

// TestForeignUnlock releases a lock late, when a holder on another replica has acquired it. If
// frees is true, the release frees that holder's lock. Otherwise it returns ErrNotHeld.
func TestForeignUnlock(t *testing.T) {
	for _, test := range []struct {
		id    string
		frees bool
	}{
		{"redis-setnx-expire", true},
		{"redis-getset", true},
		{"redis-expire", true},
		{"redis-thread-id", true},
		{"redis-uuid", false}, // for its narrower gap, see TestCompareThenDelete
		{"redis-lua", false},
		{"redis-reentrant", false},
		{"redis-watchdog", false},
	} {
		t.Run(test.id, func(t *testing.T) {
			here, there := poller(t, one(t), test.id), poller(t, one(t), test.id)
			key := newKey()
			late := acquire(t, here, request(key, "late", 0, 50*time.Millisecond))
			if here.Card().Renews { // a renewed lease does not expire
				if err := there.(locks.Cleaner).Clear(t.Context(), key); err != nil {
					t.Fatal(err)
				}
			}
			acquire(t, there, request(key, "successor", 20*time.Second, time.Minute))
			err := late.Release(t.Context())
			if test.frees && err != nil || !test.frees && !errors.Is(err, locks.ErrNotHeld) {
				t.Errorf("the late release: %v", err)
			}
			if got := free(t, there, key); got != test.frees {
				t.Errorf("the successor's lock is gone: %v, want %v", got, test.frees)
			}
		})
	}
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

// TestNoExpiry checks when the lock of a dead holder expires. In redis-setnx, the lock stays.
func TestNoExpiry(t *testing.T) {
	c := one(t)
	for _, l := range pollers(c) {
		id, key := l.Card().ID, newKey()
		if _, err := l.Acquire(t.Context(), request(key, "dead", 0, 40*time.Second)); err != nil {
			t.Fatal(err)
		}
		end := c.PTTL(t.Context(), id+":"+key).Val()
		switch id {
		case "redis-setnx":
			if end != -1 {
				t.Errorf("%s expires in %v", id, end)
			}
		case "redis-getset": // the deadline is in the value
			end, err := c.Get(t.Context(), id+":"+key).Int64()
			if left := time.Until(time.UnixMilli(end)); err != nil || left <= 0 || left > 41*time.Second {
				t.Errorf("%s: the deadline is in %v (%v)", id, left, err)
			}
		default:
			if end <= 0 || end > 40*time.Second {
				t.Errorf("%s expires in %v", id, end)
			}
		}
		if err := l.(locks.Cleaner).Clear(t.Context(), key); err != nil || !free(t, l, key) {
			t.Errorf("%s: not free when it was cleared (%v)", id, err)
		}
	}
}

// TestDeathAfterSetNX ends a task after SETNX. In redis-setnx-expire, its key then never expires.
func TestDeathAfterSetNX(t *testing.T) {
	for id, forEver := range map[string]bool{"redis-setnx-expire": true, "redis-expire": false, "redis-lua": false} {
		t.Run(id, func(t *testing.T) {
			c := one(t)
			l, key := poller(t, c, id), newKey()
			ctx := locks.WithTracer(t.Context(), func(_ context.Context, e api.Event) {
				if e.Step == "after-setnx" {
					runtime.Goexit()
				}
			})
			died := make(chan struct{})
			go func() {
				defer close(died)
				_, _ = l.Acquire(ctx, request(key, "dead", 0, 0))
			}()
			<-died
			if end := c.PTTL(t.Context(), id+":"+key).Val(); (end == -1) != forEver {
				t.Errorf("the key expires in %v", end)
			}
			if free(t, l, key) {
				t.Error("the key is free")
			}
		})
	}
}

// TestNesting lets a holder acquire its lock again. If the lock is reentrant, Redis counts the
// grants.
func TestNesting(t *testing.T) {
	c := one(t)
	for _, l := range pollers(c) {
		t.Run(l.Card().ID, func(t *testing.T) {
			key := newKey()
			name := l.Card().ID + ":" + key
			outer := acquire(t, l, request(key, "owner", 0, time.Minute))
			inner, err := l.Acquire(t.Context(), request(key, "owner", 0, time.Second))
			if l.Card().BrokenBy(api.Nesting) {
				if !errors.Is(err, locks.ErrNotAcquired) {
					t.Errorf("the same owner again: %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if count, left := c.HGet(t.Context(), name, "owner").Val(), c.PTTL(t.Context(), name).Val(); count != "2" || left < 30*time.Second {
				t.Errorf("the second acquisition is number %s, and leaves %v of the lease", count, left)
			}
			if err := inner.Release(t.Context()); err != nil {
				t.Error(err)
			}
			if err := inner.Release(t.Context()); !errors.Is(err, locks.ErrNotHeld) {
				t.Errorf("the inner release again: %v", err)
			}
			if left := c.PTTL(t.Context(), name).Val(); left < 30*time.Second || outer.Verify() != nil || free(t, l, key) {
				t.Errorf("after the inner release %v are left of the outer lease; %v", left, outer.Verify())
			}
			if err := outer.Release(t.Context()); err != nil || !free(t, l, key) {
				t.Errorf("the outer release: %v", err)
			}
		})
	}
}

// TestOverrun lets a holder work for longer than its lease. Without a renewal, a second request
// acquires the lock, and neither holder notices the other.
func TestOverrun(t *testing.T) {
	for _, l := range pollers(one(t)) {
		t.Run(l.Card().ID, func(t *testing.T) {
			key := newKey()
			if l.Card().BrokenBy(api.Overrun) {
				slow := acquire(t, l, request(key, "slow", 0, 50*time.Millisecond))
				second := acquire(t, l, request(key, "second", 20*time.Second, time.Minute))
				if err := second.Verify(); err != nil {
					t.Error(err)
				}
				if err := slow.Verify(); err != nil {
					t.Errorf("the first of two holders noticed the end of its lease: %v", err)
				}
				return
			}
			slow := acquire(t, l, request(key, "slow", 0, 2*time.Second))
			_, err := l.Acquire(t.Context(), request(key, "second", 3*time.Second, 0))
			if !errors.Is(err, locks.ErrNotAcquired) || slow.Verify() != nil {
				t.Errorf("past the lease, the second: %v; the first: %v", err, slow.Verify())
			}
		})
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
		err := held(l.renew.Run(t.Context(), c, []string{name}, test.owner, millis(test.lease)).Int64())
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
			late(ctx, t, link, key, l, request(key, "late", time.Minute, time.Minute))
			if there := poller(t, one(t), l.Card().ID); !free(t, there, key) {
				t.Error("the late command's lock is still there")
			}
		})
	}
}

// TestNoRedis checks that the error of an unreachable Redis comes at once, and names Redis.
func TestNoRedis(t *testing.T) {
	for _, l := range pollers(client(t, "redis://127.0.0.1:1/0")) {
		var gone *stock.Unavailable
		_, err := l.Acquire(t.Context(), request(newKey(), "owner", time.Minute, 0))
		if !errors.As(err, &gone) || gone.Backend != "redis" {
			t.Errorf("%s: %v", l.Card().ID, err)
		}
	}
}

// TestPolling checks that a waiter for a held lock keeps sending scripts. In TestForeignKey, a
// waiter of the strategy redis must not do this.
func TestPolling(t *testing.T) {
	c := one(t)
	l, key := ReentrantLock(c, time.Minute), newKey()
	acquire(t, l, request(key, "holder", 0, 0))
	before := commands(t, c)
	_, err := l.Acquire(t.Context(), request(key, "waiter", 2*time.Second, 0))
	if n := commands(t, c) - before; n < 5 || !errors.Is(err, locks.ErrNotAcquired) {
		t.Errorf("%d scripts in 2 s; %v", n, err)
	}
}
