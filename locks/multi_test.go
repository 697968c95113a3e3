package locks_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"oversell/api"
	"oversell/locks"
	"oversell/locks/local"
)

// shelf is a mutex in this process that logs each acquisition and release. Its grants have a
// lease if the field lease is set.
type shelf struct {
	locks.Locker // a mutex
	lease        time.Duration
	renews       bool
	hang         chan struct{} // if set, renewals wait until this channel is closed

	mu      sync.Mutex
	log     []string
	holds   map[string]*locks.Lock // the last lock of each key
	fences  int64
	gone    map[string]bool // keys whose release returns ErrNotHeld
	cleared []string
}

func newShelf() *shelf {
	return &shelf{Locker: local.Mutex(), holds: map[string]*locks.Lock{}, gone: map[string]bool{}}
}

func (s *shelf) Acquire(ctx context.Context, r locks.Request) (*locks.Lock, error) {
	inner, err := s.Locker.Acquire(ctx, r)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log = append(s.log, "+"+r.Key)
	s.fences++
	g := locks.Grant{Key: r.Key, Owner: r.Owner, Asked: time.Now(), Lease: s.lease, Fence: s.fences, Release: s.release(r.Key, inner)}
	if s.renews {
		g.Renew = func(context.Context) error {
			if s.hang != nil {
				<-s.hang
			}
			return nil
		}
	}
	g.AdvanceFence = func(_ context.Context, floor int64) (int64, error) { return floor + 1, nil }
	s.holds[r.Key] = locks.NewLock(ctx, g)
	return s.holds[r.Key], nil
}

func (s *shelf) release(key string, inner *locks.Lock) func(context.Context) error {
	return func(ctx context.Context) error {
		s.mu.Lock()
		s.log = append(s.log, "-"+key)
		gone := s.gone[key]
		s.mu.Unlock()
		if err := inner.Release(ctx); err != nil || !gone {
			return err
		}
		return locks.ErrNotHeld
	}
}

func (s *shelf) Clear(_ context.Context, key string) error {
	s.cleared = append(s.cleared, key)
	return nil
}

func (s *shelf) wantLog(t *testing.T, want ...string) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.Equal(s.log, want) {
		t.Errorf("taken and given back: %v, want %v", s.log, want)
	}
}

// TestMultiAlso checks that named keys are locked too, in the sorted order, and that each but the last is a step.
func TestMultiAlso(t *testing.T) {
	s, steps := newShelf(), 0
	ctx := locks.WithTracer(t.Context(), func(_ context.Context, e api.Event) {
		if e.Step == api.Part && e.Key == "order" {
			steps++
		}
	})
	r := ask("owner", 0)
	r.Also = []string{"warehouse", "cart"}
	l := locks.Multi(api.Card{ID: "named"}, s, func(key string) []string { return []string{key} })
	if h, err := l.Acquire(ctx, r); err != nil || h.Fence() != 2 || steps != 2 {
		t.Errorf("%v, %d steps, want fence 2 of the order, and 2 steps", err, steps)
	}
	s.wantLog(t, "+cart", "+order", "+warehouse")
}

// several returns a Multi that locks the given keys, whatever key a request names.
func several(l locks.Locker, keys ...string) locks.Locker {
	return locks.Multi(api.Card{ID: "several"}, l, func(string) []string { return keys })
}

func ask(owner string, wait time.Duration) locks.Request {
	return locks.Request{Key: "order", Owner: owner, Wait: wait}
}

func must(t *testing.T, l locks.Locker, r locks.Request) *locks.Lock {
	t.Helper()
	h, err := l.Acquire(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// TestMultiSorts checks that each key is locked once, in sorted order, and released in reverse.
func TestMultiSorts(t *testing.T) {
	s := newShelf()
	h := must(t, several(s, "b", "c", "a", "b"), ask("owner", 0))
	if h.Key() != "order" || h.Owner() != "owner" || h.Fence() != 2 {
		t.Errorf("%s of %s with fence %d, want that of the first key named, 2", h.Key(), h.Owner(), h.Fence())
	}
	if err := h.AdvanceFence(t.Context(), 41); err != nil || h.Fence() != 42 || s.holds["b"].Fence() != 42 || s.holds["a"].Fence() != 1 {
		t.Errorf("raised to %d, %v", h.Fence(), err)
	}
	if err := h.Release(t.Context()); err != nil {
		t.Error(err)
	}
	s.wantLog(t, "+a", "+b", "+c", "-c", "-b", "-a")
	if err := h.Release(t.Context()); !errors.Is(err, locks.ErrNotHeld) {
		t.Errorf("a second release: %v", err)
	}
	c := several(s, "b", "a").(locks.Cleaner)
	if err := c.Clear(t.Context(), "order"); err != nil || !slices.Equal(s.cleared, []string{"a", "b"}) {
		t.Errorf("cleared %v, %v", s.cleared, err)
	}
}

// TestMultiAllOrNothing checks that the first key is released if the second cannot be locked.
func TestMultiAllOrNothing(t *testing.T) {
	for _, test := range []struct {
		name   string
		wait   time.Duration
		cancel time.Duration
		took   time.Duration
		cause  error
	}{
		{"one try", 0, time.Hour, 0, locks.ErrNotAcquired},
		{"one wait for both keys", 5 * second, time.Hour, 5 * second, locks.ErrNotAcquired},
		{"cancelled at the first key", time.Hour, second, second, context.Canceled},
		{"cancelled at the second key", time.Hour, 4 * second, 4 * second, context.Canceled},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newShelf()
				a, b := must(t, s, locks.Request{Key: "a"}), must(t, s, locks.Request{Key: "b"})
				free := time.AfterFunc(3*second, func() { _ = a.Release(context.Background()) })
				if test.wait == 0 {
					free.Reset(0)
					time.Sleep(time.Nanosecond)
				}
				ctx, cancel := context.WithCancel(t.Context())
				time.AfterFunc(test.cancel, cancel)
				began := time.Now()
				_, err := several(s, "b", "a").Acquire(ctx, ask("owner", test.wait))
				if !errors.Is(err, locks.ErrNotAcquired) || !errors.Is(err, test.cause) || time.Since(began) != test.took {
					t.Errorf("after %v: %v", time.Since(began), err)
				}
				_ = b.Release(t.Context())
				time.Sleep(3 * second) // the holder of the first key has released it, too
				h := must(t, several(s, "b", "a"), ask("next", 0))
				_ = h.Release(t.Context())
				cancel()
			})
		})
	}
}

// TestMultiLoss checks that the joined lock is lost when any sub-lock is lost, for the same reason.
func TestMultiLoss(t *testing.T) {
	for _, lost := range []string{"a", "b", "c"} {
		t.Run(lost, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, why := newShelf(), errors.New("the server forgot")
				h := must(t, several(s, "a", "b", "c"), ask("owner", 0))
				if err := h.Verify(); err != nil {
					t.Fatal(err)
				}
				s.holds[lost].MarkLost(why)
				synctest.Wait()
				wantLost(t, h)
				if cause := context.Cause(h.Context()); !errors.Is(cause, why) {
					t.Errorf("lost because of %v, want %v", cause, why)
				}
				s.gone[lost] = true
				if err := h.Release(t.Context()); !errors.Is(err, locks.ErrNotHeld) {
					t.Errorf("release: %v, want %v", err, locks.ErrNotHeld)
				}
				s.wantLog(t, "+a", "+b", "+c", "-c", "-b", "-a")
			})
		})
	}
}

// TestMultiTrust checks that the joined lock is trusted until the lease of the sub-lock that was
// acquired first ends. If the sub-locks are renewed, the joined lock must stay trusted.
func TestMultiTrust(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShelf()
		s.lease = 10 * second
		b := must(t, s, locks.Request{Key: "b"})
		time.AfterFunc(4*second, func() { _ = b.Release(context.Background()) })
		h := must(t, several(s, "a", "b"), ask("owner", 5*second))
		if got, want := endsAfter(h), 6*second-margin(s.lease); got != want {
			t.Errorf("trusted for %v, want %v", got, want)
		}
		wantLost(t, h)
		_ = h.Release(t.Context())

		s.renews = true
		h = must(t, several(s, "a", "b"), ask("owner", 0))
		time.Sleep(10 * s.lease)
		if err := h.Verify(); err != nil {
			t.Errorf("after ten renewed leases: %v", err)
		}
		if err := h.Release(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// TestMultiLostWhileWaiting lets the lease of a sub-lock end before the last sub-lock is granted.
// Multi must then not grant the joined lock.
func TestMultiLostWhileWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShelf()
		b := must(t, s, locks.Request{Key: "b"})
		time.AfterFunc(4*second, func() { _ = b.Release(context.Background()) })
		s.lease = second
		_, err := several(s, "a", "b").Acquire(t.Context(), ask("owner", time.Minute))
		if !errors.Is(err, locks.ErrNotAcquired) || !errors.Is(err, locks.ErrLost) {
			t.Errorf("%v, want %v", err, locks.ErrNotAcquired)
		}
		s.wantLog(t, "+b", "+a", "-b", "+b", "-b", "-a")
	})
}

// TestMultiReenters checks that an owner can re-enter if the inner locker allows re-entry.
func TestMultiReenters(t *testing.T) {
	s := newShelf()
	l := several(locks.Reentrant(s), "a", "b")
	outer, inner := must(t, l, ask("owner", 0)), must(t, l, ask("owner", 0))
	for i, h := range []*locks.Lock{inner, outer} {
		if _, err := l.Acquire(t.Context(), ask("contender", 0)); !errors.Is(err, locks.ErrNotAcquired) {
			t.Errorf("a contender after %d releases: %v", i, err)
		}
		if err := h.Release(t.Context()); err != nil {
			t.Error(err)
		}
	}
	s.wantLog(t, "+a", "+b", "-b", "-a")
}

// TestMultiOppositeOrders checks that two tasks that name the same keys in opposite orders do not
// wait for each other.
func TestMultiOppositeOrders(t *testing.T) {
	inner := local.Mutex()
	var both sync.WaitGroup
	for i, l := range []locks.Locker{several(inner, "a", "b"), several(inner, "b", "a")} {
		both.Go(func() {
			for range 500 {
				h, err := l.Acquire(t.Context(), ask(fmt.Sprintf("task-%d", i), 20*second))
				if err != nil {
					t.Error(err)
					return
				}
				if err := h.Release(t.Context()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	both.Wait()
}
