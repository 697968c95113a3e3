package locks_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"oversell/api"
	"oversell/locks"
	"oversell/stock"
)

func cohort(s locks.Locker, bounds locks.Bounds) locks.Locker {
	return locks.Cohort(api.Card{ID: "cohort"}, s, bounds)
}

// took returns the log of the shared lock: "+" for each acquisition, "-" for each release.
func (s *shelf) took() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.ReplaceAll(strings.Join(s.log, ""), "stock:1", "")
}

// inLine starts tasks that queue for the lock l. It returns their fences in the order of the
// grants. Each task holds the lock for the time hold.
func inLine(t *testing.T, l locks.Locker, tasks int, hold time.Duration, change func(i int, r *locks.Request)) (fences []int64) {
	t.Helper()
	var all sync.WaitGroup
	for i := range tasks {
		r := request(fmt.Sprint(i), time.Minute)
		if change != nil {
			change(i, &r)
		}
		all.Go(func() {
			h, err := l.Acquire(t.Context(), r)
			if err != nil {
				t.Error(err)
				return
			}
			fences = append(fences, h.Fence()) // the lock protects this variable
			time.Sleep(hold)
			released(t, h)
		})
		synctest.Wait() // the task is in the queue now
	}
	all.Wait()
	return fences
}

// behind starts a request that waits while another request holds the lock l. It returns a channel
// that receives the Lock of the new request.
func behind(t *testing.T, l locks.Locker, owner string) <-chan *locks.Lock {
	t.Helper()
	next := make(chan *locks.Lock, 1)
	go func() {
		h, err := l.Acquire(t.Context(), request(owner, time.Minute))
		if err != nil {
			t.Error(err)
		}
		next <- h
	}()
	synctest.Wait()
	return next
}

// TestCohortBounds checks that the lock is passed on until one of the bounds is reached.
func TestCohortBounds(t *testing.T) {
	for name, tt := range map[string]struct {
		bounds locks.Bounds
		lease  time.Duration
		want   string
		fences string
	}{
		"holders":             {locks.Bounds{Holders: 3, Time: time.Hour}, 0, "+-+-+-", "[1 1 1 2 2 2 3]"},
		"one is no cohort":    {locks.Bounds{Holders: 1, Time: time.Hour}, 0, strings.Repeat("+-", 7), "[1 2 3 4 5 6 7]"},
		"time":                {locks.Bounds{Holders: 100, Time: 2 * second}, 0, "+-+-+-+-", "[1 1 2 2 3 3 4]"},
		"a third of a lease":  {locks.Bounds{Holders: 100, Time: time.Hour}, 12 * second, "+-+-", "[1 1 1 1 2 2 2]"},
		"a stay away between": {locks.Bounds{Holders: 4, Time: time.Hour, Yield: 5 * second}, 0, "+-+-", "[1 1 1 1 2 2 2]"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newShelf()
				s.lease = tt.lease
				began := time.Now()
				fences := inLine(t, cohort(s, tt.bounds), 7, second, nil)
				if s.took() != tt.want || fmt.Sprint(fences) != tt.fences {
					t.Errorf("shared lock %s, fences %v; want %s and %s", s.took(), fences, tt.want, tt.fences)
				}
				if took, want := time.Since(began), 7*second+tt.bounds.Yield; took != want {
					t.Errorf("took %v, want %v", took, want)
				}
			})
		})
	}
}

// TestCohortAlone checks that a replica without waiting requests releases the shared lock at once.
func TestCohortAlone(t *testing.T) {
	s := newShelf()
	l := cohort(s, locks.Bounds{Holders: 10, Time: time.Hour, Yield: time.Hour})
	for range 3 {
		released(t, acquired(t, l, "a"))
	}
	if s.took() != "+-+-+-" {
		t.Errorf("shared lock %s", s.took())
	}
}

// TestCohortLoss checks that a holder in this process loses its lock when the shared lock is lost.
// A lost lock must not be passed on.
func TestCohortLoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShelf()
		l := cohort(s, locks.Bounds{Holders: 10, Time: time.Hour})
		h := acquired(t, l, "a")
		next := behind(t, l, "b")
		s.holds["stock:1"].MarkLost(errors.New("says the backend"))
		synctest.Wait()
		if cause := context.Cause(h.Context()); !errors.Is(cause, locks.ErrLost) {
			t.Errorf("the holder is not told: %v", cause)
		}
		released(t, h)
		b := <-next
		if b.Verify() != nil || b.Fence() != 2 {
			t.Errorf("the next holder: %v, fence %d", b.Verify(), b.Fence())
		}
		released(t, b)
		if s.took() != "+-+-" {
			t.Errorf("shared lock %s", s.took())
		}
	})
}

// TestCohortLooksAtTheClock simulates a process that was paused past the lease of the shared lock,
// with a watchdog that hangs in a renewal. Verify must report the loss before any timer runs.
func TestCohortLooksAtTheClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShelf()
		s.lease, s.renews, s.hang = 30*second, true, make(chan struct{})
		l := cohort(s, locks.Bounds{Holders: 10, Time: time.Hour})
		first := acquired(t, l, "a")
		next := behind(t, l, "b")
		time.Sleep(9 * second)
		released(t, first)
		h := <-next
		if h.Verify() != nil || s.took() != "+" {
			t.Fatalf("passed on: %v, shared lock %s", h.Verify(), s.took())
		}
		time.Sleep(22 * second)
		if h.Context().Err() != nil {
			t.Fatal("the watchdog was to hang")
		}
		if err := h.Verify(); !errors.Is(err, locks.ErrLost) {
			t.Errorf("31 s into a lease of 30 s: %v", err)
		}
		close(s.hang)
		released(t, h)
	})
}

// TestCohortHangsUpLate cancels a request during its grant. The shared lock must be released.
func TestCohortHangsUpLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &late{shelf: newShelf()}
		ctx, hangUp := context.WithCancel(t.Context())
		s.granting = hangUp
		_, err := cohort(s, locks.Bounds{Holders: 10, Time: time.Hour}).Acquire(ctx, request("a", time.Minute))
		if !errors.Is(err, locks.ErrNotAcquired) || s.took() != "+-" {
			t.Errorf("%v, shared lock %s", err, s.took())
		}
	})
}

// late is a test lock that grants a request even if the request was cancelled meanwhile.
type late struct {
	*shelf
	granting func()
}

func (l *late) Acquire(ctx context.Context, r locks.Request) (*locks.Lock, error) {
	l.granting()
	return l.shelf.Acquire(context.WithoutCancel(ctx), r)
}

// TestCohortOutlivesItsFirst cancels the first holder's request. The lock must be passed on.
func TestCohortOutlivesItsFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShelf()
		l := cohort(s, locks.Bounds{Holders: 10, Time: time.Hour})
		ctx, cancel := context.WithCancel(t.Context())
		h, err := l.Acquire(ctx, request("a", 0))
		if err != nil {
			t.Fatal(err)
		}
		next := behind(t, l, "b")
		cancel()
		if h.Verify() == nil {
			t.Error("the first one's hold outlives its request")
		}
		released(t, h)
		b := <-next
		if err := b.Verify(); err != nil || s.took() != "+" {
			t.Errorf("the next holder: %v, shared lock %s", err, s.took())
		}
		released(t, b)
	})
}

// TestCohortForTheDead cancels a waiter while the lock is passed on to it. No lock may stay held.
func TestCohortForTheDead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShelf()
		l := cohort(s, locks.Bounds{Holders: 1000, Time: time.Hour})
		for range 300 { // the scheduler decides whether the cancellation or the release comes first
			h := acquired(t, l, "a")
			ctx, hangUp := context.WithCancel(t.Context())
			go func() {
				if b, err := l.Acquire(ctx, request("b", time.Minute)); err == nil {
					released(t, b)
				} else if !errors.Is(err, locks.ErrNotAcquired) {
					t.Error(err)
				}
			}()
			synctest.Wait()
			hangUp()
			released(t, h)
			synctest.Wait()
			if took := s.took(); strings.Count(took, "+") != strings.Count(took, "-") {
				t.Fatalf("nobody holds it, and the shared lock is not given back: %s", took)
			}
		}
	})
}

// TestCohortFits checks that the shared lock is passed on only to a request with the same lease. If
// this request is Fenced, the shared lock must also have a fence.
func TestCohortFits(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(i int, r *locks.Request)
		want   string
	}{
		"a lease of its own": {func(i int, r *locks.Request) { r.Lease = time.Duration(1+i) * time.Hour }, "+-+-+-"},
		"the same lease":     {func(_ int, r *locks.Request) { r.Lease = time.Hour }, "+-"},
		"a fence":            {func(_ int, r *locks.Request) { r.Fenced = true }, "+-"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newShelf()
				inLine(t, cohort(s, locks.Bounds{Holders: 10, Time: time.Hour}), 3, second, tt.change)
				if s.took() != tt.want {
					t.Errorf("shared lock %s, want %s", s.took(), tt.want)
				}
			})
		})
	}
	t.Run("no fence to pass on", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := &single{}
			inLine(t, cohort(s, locks.Bounds{Holders: 10, Time: time.Hour}), 3, second, func(i int, r *locks.Request) { r.Fenced = i > 0 })
			if len(s.requests) != 3 {
				t.Errorf("asked the backend %d times: who wants a fence must get one", len(s.requests))
			}
		})
	})
}

// TestCohortRaise advances the fence of a holder. The next holder must get the advanced fence.
func TestCohortRaise(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShelf()
		l := cohort(s, locks.Bounds{Holders: 10, Time: time.Hour})
		h := acquired(t, l, "a")
		next := behind(t, l, "b")
		if err := h.AdvanceFence(t.Context(), 41); err != nil || h.Fence() != 42 {
			t.Errorf("raised to %d: %v", h.Fence(), err)
		}
		released(t, h)
		if b := <-next; b.Fence() != 42 {
			t.Errorf("the next one has fence %d", b.Fence())
		}
	})
}

// TestCohortUnavailable checks that all waiters get the error if the backend is unavailable.
func TestCohortUnavailable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &single{latency: second, err: &stock.Unavailable{Backend: "single", Err: errors.New("gone")}}
		l := cohort(s, locks.Bounds{Holders: 10, Time: time.Hour})
		var all sync.WaitGroup
		for i := range 5 {
			all.Go(func() {
				if _, err := l.Acquire(t.Context(), request(fmt.Sprint(i), time.Minute)); !errors.Is(err, stock.ErrUnavailable) {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if len(s.requests) != 1 {
			t.Errorf("%d asked a backend that is down", len(s.requests))
		}
	})
}

// TestCohortExclusion checks that two requests never hold the lock at the same time.
func TestCohortExclusion(t *testing.T) {
	s := newShelf()
	l := locks.Reentrant(cohort(s, locks.Bounds{Holders: 5, Time: time.Hour}))
	var holders, grants atomic.Int64
	var all sync.WaitGroup
	for i := range 16 {
		all.Go(func() {
			for n := range 200 {
				ctx, hangUp := context.WithCancel(t.Context())
				if (i+n)%3 == 0 {
					go hangUp()
				}
				h, err := l.Acquire(ctx, request(fmt.Sprint(i), time.Minute))
				if err == nil {
					if now := holders.Add(1); now != 1 {
						t.Errorf("%d holders", now)
					}
					grants.Add(1)
					holders.Add(-1)
					released(t, h)
				}
				hangUp()
			}
		})
	}
	all.Wait()
	took := s.took()
	if asked := strings.Count(took, "+"); asked != strings.Count(took, "-") || int64(asked) > grants.Load() || grants.Load() < 16*200/2 {
		t.Errorf("%d grants, shared lock taken %d and given back %d times", grants.Load(), asked, strings.Count(took, "-"))
	}
}
