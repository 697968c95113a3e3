package redislock

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

// TestRun: how many grants in a row a process may take.
func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r rivals
		if r.goOn("c") {
			t.Error("a run goes on that has not begun")
		}
		for i := 1; i < run; i++ {
			r.granted("c", 0)
			if !r.goOn("c") {
				t.Errorf("grant %d of %d in a row is the last", i, run)
			}
		}
		r.granted("c", 0)
		if r.goOn("c") {
			t.Errorf("grant %d in a row is not the last", run)
		}
		// A run is short in time as well.
		r.told("c", 1, true, 0)
		r.granted("c", 2)
		time.Sleep(runTime)
		if r.goOn("c") {
			t.Errorf("a run of %v goes on", runTime)
		}
	})
}

// TestTheirs: after a run the lock is for as many of the others as took it the
// last time; at first for all that heard of the release.
func TestTheirs(t *testing.T) {
	var r rivals
	begins := func(heard, want uint64) {
		t.Helper()
		for ; r.theirs("c", heard); heard++ {
			if heard > want {
				t.Fatalf("our next run begins after message %d", heard)
			}
		}
		if heard != want {
			t.Errorf("our next run may begin at message %d, want %d", heard, want)
		}
	}
	begins(7, 7)
	r.granted("c", 7)
	r.told("c", 2, true, 7)
	begins(7, 10)     // our own message, and two more
	r.granted("c", 9) // only one of them came
	r.told("c", 2, true, 9)
	begins(9, 11)
	r.granted("c", 12) // both are there again
	r.told("c", 2, true, 12)
	begins(12, 15)
	r.granted("c", 15)
	r.told("c", 1, true, 15) // one has left
	begins(15, 17)
	for _, alone := range []struct {
		others uint64
		next   bool
	}{{0, true}, {2, false}} {
		r.granted("c", 20)
		r.told("c", alone.others, alone.next, 20)
		begins(20, 20)
	}
}

// TestFickleHeir: a process leaves the lock to a task of its own that has just gone.
// The waiter next door must not sleep for the whole lease.
func TestFickleHeir(t *testing.T) {
	here, there := Redis(one(t), time.Hour), Redis(one(t), time.Hour)
	for round := range 50 {
		key := newKey()
		first := acquire(t, here, request(key, "first", 0, 0))
		ctx, cancel := context.WithCancel(t.Context())
		var tasks sync.WaitGroup
		tasks.Go(func() {
			h, err := here.Acquire(ctx, request(key, "fickle", time.Minute, 0))
			if err == nil {
				err = h.Release(ctx)
			}
			if err != nil && !errors.Is(err, locks.ErrNotAcquired) {
				t.Error(err)
			}
		})
		tasks.Go(func() {
			h, err := there.Acquire(t.Context(), request(key, "next door", 20*time.Second, 0))
			if err == nil {
				err = h.Release(t.Context())
			}
			if err != nil {
				t.Errorf("round %d: %v", round, err)
			}
		})
		time.Sleep(time.Duration(round%5) * time.Millisecond)
		tasks.Go(cancel)
		if err := first.Release(t.Context()); err != nil {
			t.Error(err)
		}
		tasks.Wait()
	}
}

// TestRivalsGetTheirTurn: one task in one process against ten in another.
func TestRivalsGetTheirTurn(t *testing.T) {
	many, few := Redis(one(t), time.Hour), Redis(one(t), time.Hour)
	key := newKey()
	var granted atomic.Int64 // to the many
	ctx, cancel := context.WithCancel(t.Context())
	var tasks sync.WaitGroup
	for i := range 10 {
		tasks.Go(func() {
			for {
				h, err := many.Acquire(ctx, request(key, fmt.Sprint(i), time.Minute, 0))
				if err != nil {
					return
				}
				granted.Add(1)
				_ = h.Release(ctx)
			}
		})
	}
	const turns = 20
	for range turns {
		h, err := few.Acquire(t.Context(), request(key, "single", time.Minute, 0))
		if err != nil {
			t.Fatal(err)
		}
		if err := h.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	taken := granted.Load()
	cancel()
	tasks.Wait()
	t.Logf("%d grants to the ten tasks, %d to the single one", taken, turns)
	if taken > turns*run*20 {
		t.Errorf("%d grants to the ten tasks for %d to the single one", taken, turns)
	}
}
