package redislock

import (
	"errors"
	"testing"
	"time"

	"oversell/locks"
)

// TestMultiServersKeys checks that a key is locked on each server, or on none.
func TestMultiServersKeys(t *testing.T) {
	nodes, key := masters(t, servers), newKey()
	all := multiServers(make([]locks.Locker, len(nodes))).keys(key)
	locked := func() (n int64) {
		for i, node := range nodes {
			lock, _, _ := redisNames(all[i])
			n += node.Exists(t.Context(), lock).Val()
		}
		return n
	}
	h := acquire(t, MultiServers(nodes, time.Minute), request(key, "owner", 0, 0))
	if n := locked(); n != 5 {
		t.Errorf("locked on %d servers, want 5", n)
	}
	if err := h.Release(t.Context()); err != nil || locked() != 0 {
		t.Errorf("locked on %d servers after the release, %v", locked(), err)
	}
	acquire(t, Redis(nodes[4], time.Minute), request(all[4], "other", 0, 0))
	if _, err := MultiServers(nodes, time.Minute).Acquire(t.Context(), request(key, "next", 100*time.Millisecond, 0)); !errors.Is(err, locks.ErrNotAcquired) {
		t.Errorf("the last server has another holder: %v", err)
	}
	if n := locked(); n != 1 {
		t.Errorf("locked on %d servers, want only the last one", n)
	}
}
