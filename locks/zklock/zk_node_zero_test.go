package zklock

import (
	"errors"
	"testing"
	"time"

	"oversell/locks"
)

// TestNodeZero checks that node 1 enters beside node 0, and that node 2 waits. After Clear, the
// next node is node 0 again.
func TestNodeZero(t *testing.T) {
	s, key := session(t, server(), 20*time.Second), newKey()
	l := NodeZero(s)
	for range 2 {
		zero := acquire(t, l, request(key, "zero", 0))
		one := acquire(t, l, request(key, "one", 0))
		if _, err := l.Acquire(t.Context(), request(key, "two", 2*sequentialPause)); !errors.Is(err, locks.ErrNotAcquired) {
			t.Errorf("node 2 behind node 1: %v", err)
		}
		for _, h := range []*locks.Lock{zero, one} {
			if err := errors.Join(h.Verify(), h.Release(t.Context())); err != nil {
				t.Errorf("%s: %v", h.Owner(), err)
			}
		}
		three := acquire(t, l, request(key, "three", 0))
		if _, err := l.Acquire(t.Context(), request(key, "four", 0)); !errors.Is(err, locks.ErrNotAcquired) {
			t.Errorf("node 4 behind node 3: %v", err)
		}
		if err := three.Release(t.Context()); err != nil {
			t.Error(err)
		}
		if err := l.(locks.Cleaner).Clear(t.Context(), key); err != nil {
			t.Fatal(err)
		}
	}
}

// TestTimeoutGrant checks that a waiter gives up when its wait is over, and enters beside the holder
// after one session time-out.
func TestTimeoutGrant(t *testing.T) {
	const timeout = 2 * time.Second
	s, key := session(t, server(), timeout), newKey()
	l := TimeoutGrant(s)
	holder := acquire(t, l, request(key, "holder", 0))
	if _, err := l.Acquire(t.Context(), request(key, "impatient", timeout/10)); !errors.Is(err, locks.ErrNotAcquired) {
		t.Errorf("a short wait: %v", err)
	}
	began := time.Now()
	second := acquire(t, l, request(key, "second", time.Minute))
	if waited := time.Since(began); waited < timeout {
		t.Errorf("granted after %v", waited)
	}
	if err := errors.Join(holder.Verify(), second.Verify(), second.Release(t.Context()), holder.Release(t.Context())); err != nil {
		t.Error(err)
	}
}
