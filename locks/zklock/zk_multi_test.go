package zklock

import (
	"context"
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

// TestMultiWiped deletes the node with which Multi locks the warehouse. The holder must lose the
// lock of the product, too.
func TestMultiWiped(t *testing.T) {
	s := session(t, server(), 2*time.Second)
	key := newKey()
	h := acquire(t, Multi(s), request(key, "owner", 0))
	if err := ZK(s).(locks.Cleaner).Clear(t.Context(), productAndWarehouse(key)[1]); err != nil {
		t.Fatal(err)
	}
	soon(t, "the holder is notified", func() bool { return h.Context().Err() != nil })
	if cause := context.Cause(h.Context()); !errors.Is(cause, locks.ErrLost) {
		t.Errorf("it ended with %v, want %v", cause, locks.ErrLost)
	}
	if err := h.Release(t.Context()); !errors.Is(err, locks.ErrNotHeld) {
		t.Errorf("release: %v, want %v", err, locks.ErrNotHeld)
	}
	if names, _ := nodes(t, s, productAndWarehouse(key)[0]); len(names) != 0 {
		t.Errorf("the product is still locked: %v", names)
	}
}
