package locks_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"oversell/api"
	"oversell/locks"
	"oversell/stock"
)

// TestAwait checks that Await returns after the pause, a wake-up, the wait, or a cancellation. It
// returns an error if ctx is cancelled, or if the wait was over before the call.
func TestAwait(t *testing.T) {
	cause := errors.New("hung up")
	const never = time.Hour
	for _, test := range []struct {
		name              string
		wait, waited      time.Duration
		pause, wake, gone time.Duration
		after             time.Duration
		want              error
	}{
		{name: "the pause is over", wait: 9 * second, pause: 2 * second, wake: never, gone: never, after: 2 * second},
		{name: "woken", wait: 9 * second, pause: 2 * second, wake: second, gone: never, after: second},
		{name: "one try more at the end", wait: 9 * second, waited: 8 * second, pause: 5 * second, wake: never, gone: never, after: second},
		{name: "the wait was over", wait: second, waited: second, pause: second, wake: never, gone: never, want: locks.ErrNotAcquired},
		{name: "a wait of 0", pause: second, wake: never, gone: never, want: locks.ErrNotAcquired},
		{name: "hung up", wait: 9 * second, pause: 5 * second, wake: never, gone: second, after: second, want: cause},
		{name: "hung up before", wait: 9 * second, pause: 5 * second, wake: never, gone: -1, want: cause},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancelCause(t.Context())
				began := time.Now()
				time.Sleep(test.waited)
				at(test.gone, func() { cancel(cause) })
				wake := make(chan struct{})
				time.AfterFunc(test.wake, func() { close(wake) })
				asked := time.Now()
				err := locks.Await(ctx, request("owner", test.wait), began, test.pause, wake)
				if !errors.Is(err, test.want) || err != nil && !errors.Is(err, locks.ErrNotAcquired) {
					t.Errorf("%v, want %v", err, test.want)
				}
				if got := time.Since(asked); got != test.after {
					t.Errorf("after %v, want %v", got, test.after)
				}
				cancel(nil)
			})
		})
	}
}

// TestAwaitNobody checks that a request that is both woken and cancelled counts as cancelled.
func TestAwaitNobody(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	wake := make(chan struct{})
	close(wake)
	for range 100 { // select chooses a ready case at random
		if err := locks.Await(ctx, request("owner", time.Hour), time.Now(), time.Hour, wake); !errors.Is(err, locks.ErrNotAcquired) {
			t.Fatalf("one try more for a caller that is gone: %v", err)
		}
	}
}

func TestCleanUp(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	clean, done := locks.CleanUp(ctx)
	defer done()
	if _, bounded := clean.Deadline(); clean.Err() != nil || !bounded {
		t.Errorf("a clean-up's context: %v, bounded: %v", clean.Err(), bounded)
	}
}

func TestTokensDiffer(t *testing.T) {
	if a, b := locks.Token("owner"), locks.Token("owner"); a == b {
		t.Errorf("two grants have the same token %s", a)
	}
}

// TestNothingTaken checks that NothingTaken is false for each error with an unknown outcome.
func TestNothingTaken(t *testing.T) {
	for _, test := range []struct {
		err  error
		want bool
	}{
		{stock.ErrSoldOut, true},
		{stock.ErrUnknownProduct, true},
		{stock.ErrFenced, true},
		{stock.ErrConflict, true},
		{stock.ErrCancelled, true},
		{locks.ErrNotAcquired, true},
		{locks.ErrLost, true},
		{fmt.Errorf("deduct: %w", &stock.Unavailable{Backend: "redis", Err: errors.New("refused")}), true},
		{context.DeadlineExceeded, false},
		{context.Canceled, false},
		{locks.ErrNotHeld, false},
		{errors.New("driver: bad connection"), false},
		{nil, false},
	} {
		if got := locks.NothingTaken(test.err); got != test.want {
			t.Errorf("nothing taken after %q: %v, want %v", test.err, got, test.want)
		}
	}
}

// TestTrace checks that a tracer receives only the steps that are traced with its context.
func TestTrace(t *testing.T) {
	var seen []api.Event
	ctx := locks.WithTracer(t.Context(), func(_ context.Context, e api.Event) { seen = append(seen, e) })
	locks.Trace(ctx, api.Read, "stock:1", "owner", 7)
	locks.Trace(t.Context(), api.Written, "stock:1", "owner", 7)
	if len(seen) != 1 || seen[0].Step != api.Read || seen[0].Fence != 7 || seen[0].At.IsZero() {
		t.Errorf("seen: %+v", seen)
	}
}
