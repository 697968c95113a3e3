package locks_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"oversell/locks"
)

const second = time.Second

// margin returns the time before the end of a lease at which a lock is no longer trusted.
func margin(lease time.Duration) time.Duration { return lease/100 + 2*time.Millisecond }

// backend simulates the backend of a grant, in a synctest bubble with fake time.
type backend struct {
	mu        sync.Mutex
	renewals  []time.Duration // times of the renewals since the grant
	answer    func(n int) error
	slow      time.Duration // time that the backend takes to answer
	began     time.Time
	released  int
	deadlines []time.Duration // time until the deadline of each renewal's context
}

// grant returns a grant of this backend. b.answer decides the result of each renewal.
func (b *backend) grant(lease time.Duration) locks.Grant {
	b.began = time.Now()
	return locks.Grant{
		Key: "stock:1", Owner: "owner", Asked: time.Now(), Lease: lease, Fence: 7,
		Renew: b.renew, Release: func(context.Context) error { b.released++; return nil },
	}
}

func (b *backend) renew(ctx context.Context) error {
	b.mu.Lock()
	n := len(b.renewals)
	b.renewals = append(b.renewals, time.Since(b.began))
	deadline, _ := ctx.Deadline()
	b.deadlines = append(b.deadlines, time.Until(deadline))
	b.mu.Unlock()
	select {
	case <-time.After(b.slow):
	case <-ctx.Done():
		return ctx.Err()
	}
	if b.answer == nil {
		return nil
	}
	return b.answer(n)
}

// endsAfter returns the time from now until the lock's context ends.
func endsAfter(h *locks.Lock) time.Duration {
	began := time.Now()
	<-h.Context().Done()
	return time.Since(began)
}

func wantLost(t *testing.T, h *locks.Lock) {
	t.Helper()
	if cause := context.Cause(h.Context()); !errors.Is(cause, locks.ErrLost) {
		t.Errorf("the hold's context ended with %v, want %v", cause, locks.ErrLost)
	}
	if err := h.Verify(); !errors.Is(err, locks.ErrLost) {
		t.Errorf("check says %v, want %v", err, locks.ErrLost)
	}
}

// TestTrust checks that a lock is trusted until a margin before its lease ends. The lease counts
// from the time of the request, not from the time of the grant.
func TestTrust(t *testing.T) {
	for _, test := range []struct{ lease, answered, want time.Duration }{
		{10 * second, 0, 10*second - 102*time.Millisecond},
		{10 * second, 3 * second, 7*second - 102*time.Millisecond},
		{second, 0, second - 12*time.Millisecond},
		{second, 2 * second, 0}, // the lease has ended before the answer arrives
		{time.Millisecond, 0, 0},
	} {
		t.Run(fmt.Sprintf("lease %v answered after %v", test.lease, test.answered), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := (&backend{}).grant(test.lease)
				g.Renew = nil
				time.Sleep(test.answered)
				h := locks.NewLock(t.Context(), g)
				if got := endsAfter(h); got != test.want {
					t.Errorf("trusted for %v, want %v", got, test.want)
				}
				wantLost(t, h)
				_ = h.Release(t.Context())
			})
		})
	}
}

func TestNoLeaseIsForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &backend{}
		h := locks.NewLock(t.Context(), b.grant(0))
		time.Sleep(1000 * time.Hour)
		if err := h.Verify(); err != nil || len(b.renewals) > 0 {
			t.Errorf("without a lease: %v, %d renewals", err, len(b.renewals))
		}
		if err := h.Release(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// TestRenewals checks that the lease is renewed each time a third of it has passed, until the
// release. A cancellation of the request for the lock must not end the renewals.
func TestRenewals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &backend{}
		ctx, cancel := context.WithCancel(t.Context())
		h := locks.NewLock(ctx, b.grant(3*second))
		time.Sleep(4*second + second/2)
		if err := h.Verify(); err != nil {
			t.Error(err)
		}
		cancel()
		time.Sleep(4 * second)
		if err := h.Verify(); !errors.Is(err, context.Canceled) || errors.Is(err, locks.ErrLost) {
			t.Errorf("after the request was cancelled, check says %v", err)
		}
		if err := h.Release(ctx); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Hour)
		want := []time.Duration{1 * second, 2 * second, 3 * second, 4 * second, 5 * second, 6 * second, 7 * second, 8 * second}
		if fmt.Sprint(b.renewals) != fmt.Sprint(want) {
			t.Errorf("renewed at %v, want %v", b.renewals, want)
		}
	})
}

// TestSlowRenewals checks that a renewed lease counts from the time when its renewal was sent.
func TestSlowRenewals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &backend{slow: second / 2, answer: func(n int) error {
			if n > 0 {
				return errors.New("no answer")
			}
			return nil
		}}
		h := locks.NewLock(t.Context(), b.grant(3*second))
		// The lease counts from the renewal at 1 s, not from its answer at 1.5 s.
		if got, want := endsAfter(h), 4*second-margin(3*second); got != want {
			t.Errorf("trusted for %v, want %v", got, want)
		}
		wantLost(t, h)
		_ = h.Release(t.Context())
	})
}

// TestFailedRenewals checks that failed renewals are repeated until the lock is no longer trusted.
func TestFailedRenewals(t *testing.T) {
	for _, test := range []struct {
		name    string
		answer  func(n int) error
		ends    time.Duration // 0 means that the context does not end within 10 s
		retried time.Duration // time of the second renewal
	}{
		{"never answered", func(int) error { return errors.New("no answer") }, 3*second - margin(3*second), 1150 * time.Millisecond},
		{"answered again", func(n int) error {
			if n < 5 {
				return errors.New("no answer")
			}
			return nil
		}, 0, 1150 * time.Millisecond},
		{"gone", func(int) error { return fmt.Errorf("renew: %w", locks.ErrNotHeld) }, second, 0},
		{"gone, after no answer", func(n int) error {
			if n == 0 {
				return errors.New("no answer")
			}
			return locks.ErrNotHeld
		}, 1150 * time.Millisecond, 1150 * time.Millisecond},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := &backend{answer: test.answer}
				h := locks.NewLock(t.Context(), b.grant(3*second))
				if test.ends == 0 {
					time.Sleep(10 * second)
					if err := h.Verify(); err != nil {
						t.Error(err)
					}
				} else {
					if got := endsAfter(h); got != test.ends {
						t.Errorf("lost after %v, want %v", got, test.ends)
					}
					wantLost(t, h)
				}
				if test.retried != 0 && b.renewals[1] != test.retried {
					t.Errorf("renewed at %v, want the second at %v", b.renewals, test.retried)
				}
				_ = h.Release(t.Context())
			})
		})
	}
}

// TestRenewalDeadline checks that a renewal ends when the lock is no longer trusted.
func TestRenewalDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &backend{slow: time.Hour}
		h := locks.NewLock(t.Context(), b.grant(3*second))
		if got, want := endsAfter(h), 3*second-margin(3*second); got != want {
			t.Errorf("lost after %v, want %v", got, want)
		}
		if got, want := b.deadlines[0], 2*second-margin(3*second); got != want {
			t.Errorf("the renewal had %v, want %v", got, want)
		}
		_ = h.Release(t.Context())
	})
}

// TestCheckLooksAtTheClock simulates a process that was paused past its lease, with a watchdog that
// hangs in a renewal. Verify must report the loss before any timer runs.
func TestCheckLooksAtTheClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := (&backend{}).grant(3 * second)
		hang := make(chan struct{})
		g.Renew = func(context.Context) error { <-hang; return nil }
		h := locks.NewLock(t.Context(), g)
		until := 3*second - margin(3*second)
		time.Sleep(until - 1)
		if err := h.Verify(); err != nil {
			t.Errorf("1 ns before the end: %v", err)
		}
		time.Sleep(time.Nanosecond)
		if h.Context().Err() != nil {
			t.Fatal("the watchdog was to hang")
		}
		if err := h.Verify(); !errors.Is(err, locks.ErrLost) {
			t.Errorf("at the end: %v, want %v", err, locks.ErrLost)
		}
		wantLost(t, h)
		close(hang)
		_ = h.Release(t.Context())
	})
}

// TestReleaseJoinsTheRenewer checks that the watchdog ends before the release. A renewal after
// the release could keep alive a lock that no request holds.
func TestReleaseJoinsTheRenewer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := (&backend{}).grant(3 * second)
		var renewing atomic.Bool
		g.Renew = func(ctx context.Context) error {
			renewing.Store(true)
			<-ctx.Done()
			time.Sleep(second / 2) // the backend needs some time to notice the cancellation
			renewing.Store(false)
			return ctx.Err()
		}
		g.Release = func(context.Context) error {
			if renewing.Load() {
				t.Error("released in the middle of a renewal")
			}
			return nil
		}
		h := locks.NewLock(t.Context(), g)
		time.Sleep(second + second/10)
		if !renewing.Load() {
			t.Fatal("the renewal was to be under way")
		}
		if err := h.Release(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestReleaseSurvivesCancellation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := (&backend{}).grant(3 * second)
		type key struct{}
		g.Release = func(ctx context.Context) error {
			deadline, ok := ctx.Deadline()
			if ctx.Err() != nil || !ok || time.Until(deadline) <= 0 || ctx.Value(key{}) != "kept" {
				t.Errorf("the release's context: %v, deadline in %v, value %v", ctx.Err(), time.Until(deadline), ctx.Value(key{}))
			}
			<-ctx.Done() // this backend never answers
			return ctx.Err()
		}
		ctx, cancel := context.WithCancel(context.WithValue(t.Context(), key{}, "kept"))
		h := locks.NewLock(ctx, g)
		after := false
		h.OnRelease(func() { after = true })
		cancel()
		if err := h.Release(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a release without an answer: %v", err)
		}
		if !after {
			t.Error("after a release that failed, Then was not called")
		}
	})
}

// TestReleaseOnce checks that only one of many concurrent calls of Release frees the lock.
func TestReleaseOnce(t *testing.T) {
	b := &backend{}
	h := locks.NewLock(t.Context(), b.grant(time.Minute))
	after := 0
	h.OnRelease(func() { after++ })
	var good, bad atomic.Int32
	var releasing sync.WaitGroup
	for range 20 {
		releasing.Go(func() {
			switch err := h.Release(t.Context()); {
			case err == nil:
				good.Add(1)
			case errors.Is(err, locks.ErrNotHeld):
				bad.Add(1)
			default:
				t.Error(err)
			}
		})
	}
	releasing.Wait()
	if good.Load() != 1 || bad.Load() != 19 || b.released != 1 || after != 1 {
		t.Errorf("%d released, %d told not held; the backend saw %d, Then was called %d times",
			good.Load(), bad.Load(), b.released, after)
	}
	if h.Context().Err() == nil {
		t.Error("the hold's context outlives its release")
	}
	if err := h.Verify(); !errors.Is(err, context.Canceled) || errors.Is(err, locks.ErrLost) {
		t.Errorf("after its release the hold says %v", err)
	}
}

// TestLose checks that Verify returns the loss that the backend reported, with its reason.
func TestLose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := locks.NewLock(t.Context(), (&backend{}).grant(3*second))
		why := errors.New("session expired")
		h.MarkLost(why)
		if err := h.Verify(); !errors.Is(err, locks.ErrLost) || !errors.Is(err, why) {
			t.Errorf("check says %v", err)
		}
		if err := h.Release(t.Context()); err != nil {
			t.Error(err) // the backend still kept the lock
		}
	})
}

func TestRaise(t *testing.T) {
	mint := func(_ context.Context, floor int64) (int64, error) { return floor + 1, nil }
	broken := func(context.Context, int64) (int64, error) { return 0, locks.ErrNotHeld }
	low := func(context.Context, int64) (int64, error) { return 8, nil }
	for _, test := range []struct {
		name        string
		raise       func(context.Context, int64) (int64, error)
		floor, want int64
		wrong       bool
	}{
		{"minted above the floor", mint, 41, 42, false},
		{"the mint fails", broken, 41, 7, true},
		{"the mint is not above the floor", low, 8, 7, true},
		{"no mint, and the row has our own fence", nil, 7, 7, true},
		{"no mint, and the row has a later fence", nil, 8, 7, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := (&backend{}).grant(time.Minute)
			g.AdvanceFence = test.raise
			h := locks.NewLock(t.Context(), g)
			defer func() { _ = h.Release(context.Background()) }()
			err := h.AdvanceFence(t.Context(), test.floor)
			if (err != nil) != test.wrong || h.Fence() != test.want {
				t.Errorf("fence %d, %v; want fence %d, error: %v", h.Fence(), err, test.want, test.wrong)
			}
		})
	}
}

// TestLook checks that each Verify asks the backend, until the backend reports the loss.
func TestLook(t *testing.T) {
	var gone error
	looks := 0
	h := locks.NewLock(t.Context(), locks.Grant{
		Key: "k", Release: func(context.Context) error { return nil },
		Verify: func(context.Context) error {
			looks++
			return gone
		},
	})
	if err := h.Verify(); err != nil || looks != 1 {
		t.Errorf("%v after %d looks", err, looks)
	}
	gone = locks.ErrNotHeld
	for range 2 {
		if err := h.Verify(); !errors.Is(err, locks.ErrLost) || !errors.Is(context.Cause(h.Context()), locks.ErrLost) {
			t.Errorf("%v, the context ends with %v", err, context.Cause(h.Context()))
		}
	}
	if looks != 2 {
		t.Errorf("%d looks at a hold that was lost at the second", looks)
	}
	_ = h.Release(t.Context())
}
