package locks_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"oversell/locks"
)

// TestReentrant checks that an owner gets the Lock that it holds, and that other owners wait.
func TestReentrant(t *testing.T) {
	s := &single{}
	l := locks.Reentrant(s)
	outer := acquired(t, l, "owner")
	inner := acquired(t, l, "owner")
	if inner != outer || len(s.requests) != 1 {
		t.Errorf("the second hold is another one; the backend was asked %d times", len(s.requests))
	}
	if _, err := l.Acquire(t.Context(), request("contender", 0)); !errors.Is(err, locks.ErrNotAcquired) {
		t.Errorf("another owner: %v", err)
	}
	other := request("owner", 0)
	other.Key = "stock:2"
	if _, err := l.Acquire(t.Context(), other); !errors.Is(err, locks.ErrNotAcquired) {
		t.Errorf("another key is another lock: %v", err)
	}
	released(t, inner)
	if !s.held {
		t.Fatal("the inner release freed the lock")
	}
	released(t, outer)
	if s.held {
		t.Fatal("the outer release did not free the lock")
	}
	if err := outer.Release(t.Context()); !errors.Is(err, locks.ErrNotHeld) {
		t.Errorf("a third release: %v", err)
	}
	released(t, acquired(t, l, "contender"))
	// The owner has released its lock, so Acquire must return a new Lock.
	again := acquired(t, l, "owner")
	if again == outer {
		t.Error("the owner got its old hold")
	}
	released(t, again)
}

// TestReentrantAfterLoss checks that a lost lock cannot be entered again.
func TestReentrantAfterLoss(t *testing.T) {
	s := &single{}
	l := locks.Reentrant(s)
	lost := acquired(t, l, "owner")
	lost.MarkLost(errors.New("wiped"))
	if _, err := l.Acquire(t.Context(), request("owner", 0)); !errors.Is(err, locks.ErrNotAcquired) {
		t.Errorf("the owner of a lost lock, while another holds it: %v", err)
	}
	s.held = false // the next holder has released the lock
	next := acquired(t, l, "owner")
	if next == lost {
		t.Fatal("the owner entered the lost hold")
	}
	// The late release of the lost lock must not make Reentrant forget the new lock.
	_ = lost.Release(t.Context())
	if again := acquired(t, l, "owner"); again != next {
		t.Error("the owner has forgotten its hold")
	}
}

// TestReentrantAfterHangUp checks that an owner cannot re-enter the lock of an earlier request that
// was cancelled.
func TestReentrantAfterHangUp(t *testing.T) {
	l := locks.Reentrant(&single{})
	ctx, cancel := context.WithCancel(t.Context())
	h, err := l.Acquire(ctx, request("owner", 0))
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if _, err := l.Acquire(t.Context(), request("owner", 0)); !errors.Is(err, locks.ErrNotAcquired) {
		t.Errorf("a second request entered a hold whose context had ended: %v", err)
	}
	released(t, h)
}

// TestReentrantForTheDead checks that a cancelled request gets no lock, even if its owner holds it.
func TestReentrantForTheDead(t *testing.T) {
	l := locks.Reentrant(&single{})
	h := acquired(t, l, "owner")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := l.Acquire(ctx, request("owner", 0)); !errors.Is(err, locks.ErrNotAcquired) {
		t.Errorf("for a caller that is gone: %v", err)
	}
	released(t, h)
}

// TestReentrantQueue puts Reentrant around Queue. In the other order, an owner would block itself.
func TestReentrantQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := locks.Reentrant(locks.Queue(&single{}))
		outer, inner := acquired(t, l, "owner"), acquired(t, l, "owner")
		contender := make(chan time.Time, 1)
		go func() {
			h, err := l.Acquire(t.Context(), request("contender", time.Hour))
			if err != nil {
				t.Error(err)
				return
			}
			contender <- time.Now()
			released(t, h)
		}()
		time.Sleep(second)
		released(t, inner)
		time.Sleep(second)
		freed := time.Now()
		released(t, outer)
		if got := <-contender; got.Before(freed) {
			t.Error("the contender came in before the last release")
		}
	})
}

// TestDecoratorsClear checks that each decorator passes Clear on to its inner locker.
func TestDecoratorsClear(t *testing.T) {
	s := &single{}
	l := locks.Reentrant(locks.Queue(s))
	if err := l.(locks.Cleaner).Clear(t.Context(), "stock:1"); err != nil || len(s.cleared) != 1 {
		t.Errorf("cleared %v: %v", s.cleared, err)
	}
}

func acquired(t *testing.T, l locks.Locker, owner string) *locks.Lock {
	t.Helper()
	h, err := l.Acquire(t.Context(), request(owner, 0))
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func released(t *testing.T, h *locks.Lock) {
	t.Helper()
	if err := h.Release(t.Context()); err != nil {
		t.Error(err)
	}
}
