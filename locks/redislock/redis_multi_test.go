package redislock

import (
	"errors"
	"testing"
	"time"

	"oversell/locks"
)

// TestMultiKeys checks that both keys are locked and released together, or none. A lock of the
// strategy redis on the same product must not block redis-multi.
func TestMultiKeys(t *testing.T) {
	c, key := one(t), newKey()
	keys := productAndWarehouse(key)
	acquire(t, Redis(c, time.Minute), request(key, "other", 0, 0))
	h := acquire(t, Multi(c, time.Minute), request(key, "owner", 0, 0))
	product, _, _ := redisNames(keys[0])
	warehouse, _, _ := redisNames(keys[1])
	locked := func() int64 { return c.Exists(t.Context(), product, warehouse).Val() }
	if n := locked(); n != 2 {
		t.Errorf("%d keys are locked, want 2", n)
	}
	if err := h.Release(t.Context()); err != nil || locked() != 0 {
		t.Errorf("%d keys stay locked, %v", locked(), err)
	}
	acquire(t, Redis(one(t), time.Minute), request(keys[1], "stocktaking", 0, 0))
	if _, err := Multi(c, time.Minute).Acquire(t.Context(), request(key, "next", 100*time.Millisecond, 0)); !errors.Is(err, locks.ErrNotAcquired) {
		t.Errorf("the warehouse is locked: %v", err)
	}
	if c.Exists(t.Context(), product).Val() != 0 {
		t.Error("the product stays locked")
	}
}
