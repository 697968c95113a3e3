package redislock

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/locks"
	"oversell/trial/lockstest"
)

// released returns the locks whose release names its grant. Such a release can be sent again
// without releasing the lock of another holder.
func released(clients []redis.UniversalClient) map[string]locks.Locker {
	const lease = time.Hour // no test waits for the end of this lease
	return map[string]locks.Locker{
		"redis": Redis(clients[0], lease), "redis-fair": Fair(clients[0], lease), "redis-lua": Lua(clients[0], lease),
		"redis-reentrant": ReentrantLock(clients[0], lease), "redis-watchdog": Watchdog(clients[0], lease),
		"redis-unrecovered": Unrecovered(clients[0], lease), "redis-multi-servers": MultiServers(clients, lease),
		"redlock": Redlock(clients, lease),
	}
}

// viaLinks returns one client for each server, and the network link that this client uses.
func viaLinks(t *testing.T) (links []*lockstest.Link, clients []redis.UniversalClient) {
	t.Helper()
	for _, url := range servers.Addresses().Redis {
		link := linkTo(t, url)
		links, clients = append(links, link), append(clients, client(t, servers.RedisURL(link.Addr())))
	}
	return links, clients
}

// TestReleaseOutage breaks the connections before the release. The next holder is granted the lock
// when the connections are back, not after the lease of an hour.
func TestReleaseOutage(t *testing.T) {
	links, clients := viaLinks(t)
	others := released(masters(t, servers))
	for id, l := range released(clients) {
		t.Run(id, func(t *testing.T) {
			key := newKey()
			h := acquire(t, l, request(key, "holder", 0, 0))
			for _, link := range links {
				link.Cut(true)
			}
			err := h.Release(t.Context())
			for _, link := range links {
				link.Cut(false)
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

// TestReleaseLostAnswer loses the answer of a release, so the client sends the release again.
// Release must return no error, and the next request must get the lock.
func TestReleaseLostAnswer(t *testing.T) {
	links, clients := viaLinks(t)
	others := released(masters(t, servers))
	for id, l := range released(clients) {
		t.Run(id, func(t *testing.T) {
			if !free(t, l, newKey()) { // this loads the scripts
				t.Fatal("a new key is not free")
			}
			key := newKey()
			h := acquire(t, l, request(key, "holder", 0, 0))
			for _, link := range links {
				link.LoseAnswer(key)
			}
			if err := h.Release(t.Context()); err != nil {
				t.Errorf("released, without an answer: %v", err)
			}
			acquire(t, others[id], request(key, "next", 30*time.Second, 0))
		})
	}
}

// TestReleaseCountsOnce acquires a lock twice as the same owner and loses the answer of the inner
// release. The client repeats this release, which must not end the outer grant. It must not end a
// later grant of this owner, either.
func TestReleaseCountsOnce(t *testing.T) {
	links, clients := viaLinks(t)
	for _, id := range []string{"redis-reentrant", "redis-watchdog"} {
		t.Run(id, func(t *testing.T) {
			l, key := released(clients)[id], newKey()
			outer := acquire(t, l, request(key, "owner", 0, 0))
			inner := acquire(t, l, request(key, "owner", 0, 0))
			links[0].LoseAnswer(key)
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

// TestRedlockLeavesNothing releases while one of the masters cannot be reached. The key on this
// master must be deleted later. If such keys stayed, soon no majority of the masters would be free.
func TestRedlockLeavesNothing(t *testing.T) {
	links, clients := viaLinks(t)
	all := masters(t, servers)
	l, key := Redlock(clients, time.Hour), newKey()
	for i := range links {
		h := acquire(t, l, request(key, "holder", 30*time.Second, 0))
		links[i].Cut(true)
		// If only three of five masters had the key, a release without one of the three has an unknown
		// outcome. Then Release may return an error, but not ErrNotHeld.
		if err := h.Release(t.Context()); errors.Is(err, locks.ErrNotHeld) {
			t.Errorf("released on the others: %v", err)
		}
		links[i].Cut(false)
	}
	for i, node := range all {
		soon(t, fmt.Sprint("the key is gone on master ", i), func() bool { return node.Exists(t.Context(), "redlock:"+key).Val() == 0 })
	}
}

// TestPassOn passes a lock on, also with a lost answer. Then the old token frees nothing, the next token has a higher
// fence, and no token stays.
func TestPassOn(t *testing.T) {
	links, clients := viaLinks(t)
	l := newRedisLock(clients[0], time.Hour)
	for _, lost := range []bool{false, true} { // the first round loads the scripts
		key := newKey()
		r := request(key, "holder", 0, 0)
		fence, _, err := l.try(t.Context(), key, "token", time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		first := l.grant(r, "token", time.Hour, time.Now(), fence)
		if lost {
			links[0].LoseAnswer(key)
		}
		next, err := first.PassOn(t.Context())
		if lost {
			if err == nil {
				t.Error("no error for a lost answer")
			}
			if err := first.Again(t.Context()); err != nil {
				t.Errorf("free both tokens: %v", err)
			}
		} else {
			if err != nil || next.Fence <= fence {
				t.Errorf("passed on with the fence %d after %d: %v", next.Fence, fence, err)
			}
			if err := first.Release(t.Context()); !errors.Is(err, locks.ErrNotHeld) || free(t, l, key) {
				t.Errorf("released by the old token: %v", err)
			}
			if err := next.Release(t.Context()); err != nil {
				t.Error(err)
			}
		}
		if !free(t, l, key) {
			t.Errorf("a token stays, lost answer: %v", lost)
		}
	}
}
