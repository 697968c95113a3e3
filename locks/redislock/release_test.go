package redislock

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/locks"
	"oversell/locks/lockstest"
)

// released are the locks whose release names its holder, and so may be sent again.
func released(clients []redis.UniversalClient) map[string]locks.Locker {
	const lease = time.Hour // no test waits for it
	return map[string]locks.Locker{
		"redis": Redis(clients[0], lease), "redis-fair": Fair(clients[0], lease), "redis-lua": Lua(clients[0], lease),
		"redis-reentrant": ReentrantLock(clients[0], lease), "redis-watchdog": Watchdog(clients[0], lease),
		"redlock": Redlock(clients, lease),
	}
}

// viaLines are clients for all servers, each over a line of its own.
func viaLines(t *testing.T) (lines []*lockstest.Link, clients []redis.UniversalClient) {
	t.Helper()
	for _, url := range servers.Addresses().Redis {
		line := lineTo(t, url)
		lines, clients = append(lines, line), append(clients, client(t, servers.RedisURL(line.Addr())))
	}
	return lines, clients
}

// TestReleaseOutage: the connections break before the release. The next holder gets in when
// they are back, not when the lease is over, which is an hour.
func TestReleaseOutage(t *testing.T) {
	lines, clients := viaLines(t)
	others := released(masters(t, servers))
	for id, l := range released(clients) {
		t.Run(id, func(t *testing.T) {
			key := newKey()
			h := acquire(t, l, request(key, "holder", 0, 0))
			for _, line := range lines {
				line.Cut(true)
			}
			err := h.Release(t.Context())
			for _, line := range lines {
				line.Cut(false)
			}
			if err == nil || errors.Is(err, locks.ErrNotHeld) {
				t.Errorf("released without a server: %v", err)
			}
			next := acquire(t, others[id], request(key, "next", 30*time.Second, 0))
			if err := next.Verify(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestReleaseLostAnswer: the server releases, and the answer is lost. That is no loss of
// the lock, and a second request for it releases nothing more.
func TestReleaseLostAnswer(t *testing.T) {
	lines, clients := viaLines(t)
	others := released(masters(t, servers))
	for id, l := range released(clients) {
		t.Run(id, func(t *testing.T) {
			if !free(t, l, newKey()) { // the scripts are loaded
				t.Fatal("a new key is not free")
			}
			key := newKey()
			h := acquire(t, l, request(key, "holder", 0, 0))
			for _, line := range lines {
				line.LoseAnswer(key)
			}
			if err := h.Release(t.Context()); err != nil {
				t.Errorf("released, without an answer: %v", err)
			}
			acquire(t, others[id], request(key, "next", 30*time.Second, 0))
		})
	}
}

// TestReleaseCountsOnce: the answer to an inner release is lost, and it is sent again. The
// outer hold stays, and also the owner's next one when a late second request comes.
func TestReleaseCountsOnce(t *testing.T) {
	lines, clients := viaLines(t)
	for _, id := range []string{"redis-reentrant", "redis-watchdog"} {
		t.Run(id, func(t *testing.T) {
			l, key := released(clients)[id], newKey()
			outer := acquire(t, l, request(key, "owner", 0, 0))
			inner := acquire(t, l, request(key, "owner", 0, 0))
			lines[0].LoseAnswer(key)
			if err := inner.Release(t.Context()); err != nil {
				t.Errorf("the inner release, without an answer: %v", err)
			}
			if free(t, l, key) {
				t.Error("the outer hold was released with it")
			}
			if err := outer.Release(t.Context()); err != nil {
				t.Error(err)
			}
			again := acquire(t, l, request(key, "owner", 0, 0))
			if free(t, l, key) || again.Verify() != nil {
				t.Error("the owner's next hold is not one")
			}
		})
	}
}

// TestRedlockLeavesNothing: a minority of the masters can't be reached when the lock is
// released. Their keys go when they are back: else those of a few holders, here and there,
// leave nobody a majority.
func TestRedlockLeavesNothing(t *testing.T) {
	lines, clients := viaLines(t)
	all := masters(t, servers)
	l, key := Redlock(clients, time.Hour), newKey()
	for i := range lines {
		h := acquire(t, l, request(key, "holder", 30*time.Second, 0))
		lines[i].Cut(true)
		// Where the lock was held on a bare majority, the one that is away decides.
		if err := h.Release(t.Context()); errors.Is(err, locks.ErrNotHeld) {
			t.Errorf("released on the others: %v", err)
		}
		lines[i].Cut(false)
	}
	for i, node := range all {
		soon(t, fmt.Sprint("the key is gone on master ", i), func() bool { return node.Exists(t.Context(), "redlock:"+key).Val() == 0 })
	}
}
