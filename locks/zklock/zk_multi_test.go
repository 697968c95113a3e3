package zklock

import (
	"errors"
	"testing"
	"time"

	"oversell/locks"
)

// TestMultiPaths checks that Multi locks both the product and the warehouse, or neither of them.
func TestMultiPaths(t *testing.T) {
	s, other := session(t, server(), 20*time.Second), session(t, server(), 20*time.Second)
	key := newKey()
	paths := productAndWarehouse(key)
	busy := func(want ...int) {
		t.Helper()
		for i, path := range paths {
			if names, _ := nodes(t, s, path); len(names) != want[i] {
				t.Errorf("%s has %v, want %d nodes", path, names, want[i])
			}
		}
	}
	first := acquire(t, Multi(s), locks.Request{Key: key, Owner: "first", Fenced: true})
	busy(1, 1)
	if _, err := Multi(other).Acquire(t.Context(), request(key, "contender", 0)); !errors.Is(err, locks.ErrNotAcquired) {
		t.Errorf("a contender: %v", err)
	}
	busy(1, 1)
	if err := first.Release(t.Context()); err != nil {
		t.Error(err)
	}
	busy(0, 0)

	warehouse := acquire(t, ZK(other), request(paths[1], "stocktaking", 0))
	if _, err := Multi(s).Acquire(t.Context(), request(key, "second", 100*time.Millisecond)); !errors.Is(err, locks.ErrNotAcquired) {
		t.Errorf("the warehouse is locked: %v", err)
	}
	busy(0, 1)
	if err := warehouse.Release(t.Context()); err != nil {
		t.Error(err)
	}
	third := acquire(t, Multi(other), locks.Request{Key: key, Owner: "third", Fenced: true})
	if first.Fence() <= 0 || third.Fence() <= first.Fence() {
		t.Errorf("fence %d after %d", third.Fence(), first.Fence())
	}
}
