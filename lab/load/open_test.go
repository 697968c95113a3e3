package load_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"oversell/lab/history"
	"oversell/lab/load"
)

// exceeded returns the time that the given share of the requests exceeds. of is a request's time.
func exceeded(ops []history.Op, share float64, of func(history.Op) time.Duration) time.Duration {
	all := make([]time.Duration, len(ops))
	for i, op := range ops {
		all[i] = of(op)
	}
	slices.Sort(all)
	return all[len(all)-1-int(share*float64(len(all)))]
}

// In TestCoordinatedOmission, the service stalls once on both connections. Counted from the time of
// sending, two of a thousand requests are slow. Counted from the due times, a quarter of the
// requests is slow.
func TestCoordinatedOmission(t *testing.T) {
	const stall = 500 * time.Millisecond
	var nth atomic.Int64
	server := service(t, func(w http.ResponseWriter, r *http.Request) {
		if n := nth.Add(1); n == 300 || n == 301 {
			time.Sleep(stall) // the stall
		}
		sold(w, r)
	})
	p := plan(server.URL, 2, 500)
	p.Rate = 500
	h, err := load.Run(t.Context(), p, nil)
	if err != nil || len(h.Ops) != 1000 || h.Rate != 500 {
		t.Fatalf("%d operations at %v/s, %v", len(h.Ops), h.Rate, err)
	}
	due := exceeded(h.Ops, 0.01, history.Op.Elapsed)
	sent := exceeded(h.Ops, 0.01, history.Op.Served)
	// The ten slowest of 1000 requests were due within 20 ms, so each waited for most of the stall.
	if due < stall-50*time.Millisecond {
		t.Errorf("99%% took at most %v from their due time, though the service stalled for %v", due, stall)
	}
	if sent > stall/3 {
		t.Errorf("99%% took at most %v from the time of sending, which includes the stall", sent)
	}
	if slow := exceeded(h.Ops, 0, history.Op.Served); slow < stall {
		t.Errorf("the longest answer took %v, though the service stalled for %v", slow, stall)
	}
}

// TestDueTimesAreEven checks that due times depend on the rate alone, and that no request is sent
// before it is due.
func TestDueTimesAreEven(t *testing.T) {
	server := service(t, sold)
	p := plan(server.URL, 20, 50)
	p.Rate = 2000
	h, err := load.Run(t.Context(), p, nil)
	if err != nil || len(h.Ops) != 1000 {
		t.Fatalf("%d operations, %v", len(h.Ops), err)
	}
	slices.SortFunc(h.Ops, func(a, b history.Op) int { return int(a.Due - b.Due) })
	for i, op := range h.Ops {
		if i > 0 && op.Due-h.Ops[i-1].Due != 500*time.Microsecond {
			t.Fatalf("request %d is due %v after its predecessor", i, op.Due-h.Ops[i-1].Due)
		}
		if op.Due <= 0 || op.Late() < 0 || op.Elapsed() != op.Return-op.Due || op.Served() > op.Elapsed() {
			t.Fatalf("request %d: due %v, called %v, returned %v", i, op.Due, op.Call, op.Return)
		}
	}
}

// TestBusyConnectionsDelayRequests checks that due requests wait for a connection and are all sent.
func TestBusyConnectionsDelayRequests(t *testing.T) {
	var inside, most atomic.Int64
	server := service(t, func(w http.ResponseWriter, r *http.Request) {
		now := inside.Add(1)
		defer inside.Add(-1)
		for seen := most.Load(); now > seen && !most.CompareAndSwap(seen, now); seen = most.Load() {
			continue
		}
		time.Sleep(2 * time.Millisecond) // more than three connections can serve at this rate
		sold(w, r)
	})
	p := plan(server.URL, 3, 40)
	p.Rate = 20_000
	h, err := load.Run(t.Context(), p, nil)
	if err != nil || len(h.Ops) != 120 || most.Load() > 3 {
		t.Fatalf("%d operations, at most %d at once, %v; want 120 and 3", len(h.Ops), most.Load(), err)
	}
	last := h.Ops[len(h.Ops)-1]
	if last.Late() < 20*time.Millisecond || last.Active > 3 {
		t.Errorf("the last one was sent %v after it was due, %d active", last.Late(), last.Active)
	}
}

func TestStopOfAnOpenLoop(t *testing.T) {
	release := make(chan struct{})
	var waiting atomic.Int64
	server := service(t, func(w http.ResponseWriter, r *http.Request) {
		if waiting.Add(1) > 20 {
			<-release
		}
		sold(w, r)
	})
	t.Cleanup(func() { close(release) })
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		for waiting.Load() < 25 {
			time.Sleep(time.Millisecond)
		}
		cancel()
	}()
	p := plan(server.URL, 5, 1000)
	p.Rate = 1000
	h, err := load.Run(ctx, p, nil)
	unknown := history.Count(h.Ops, func(op *history.Op) bool { return op.Reason == history.Interrupted })
	if !errors.Is(err, context.Canceled) || len(h.Ops) != 25 || unknown != 5 || !h.Stopped {
		t.Errorf("%d operations, %d interrupted, stopped %v, error %v; want 25, 5 and the context's", len(h.Ops), unknown, h.Stopped, err)
	}
}

// TestStopBetweenTwoRequests checks that a stopped run does not wait for the next due time.
func TestStopBetweenTwoRequests(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	p := plan(service(t, sold).URL, 5, 1000)
	p.Rate = load.Rate(1) / 60
	h, err := load.Run(ctx, p, func(g load.Progress) {
		if g.Done == 1 {
			cancel()
		}
	})
	if !errors.Is(err, context.Canceled) || len(h.Ops) != 1 {
		t.Errorf("%d operations, error %v; want 1 and the context's", len(h.Ops), err)
	}
}

// TestLength checks that no request is sent after the planned length of the run, and that requests
// in flight are completed.
func TestLength(t *testing.T) {
	for _, rate := range []load.Rate{0, 100} {
		server := service(t, func(w http.ResponseWriter, r *http.Request) {
			time.Sleep(5 * time.Millisecond)
			sold(w, r)
		})
		p := plan(server.URL, 2, 100_000)
		p.Rate, p.Length = rate, 2*time.Second // longer than a busy machine stops this process
		h, err := load.Run(t.Context(), p, nil)
		if err != nil || h.Stopped || len(h.Ops) == 0 || h.Length != p.Length {
			t.Fatalf("%d operations, stopped %v, %v", len(h.Ops), h.Stopped, err)
		}
		for _, op := range h.Ops {
			if op.Outcome != history.OK || rate == 0 && op.Call > p.Length+5*time.Second || op.Due >= p.Length {
				t.Errorf("%+v", op)
			}
		}
	}
}

// TestEvery checks that a client does not send faster after a delay to catch up.
func TestEvery(t *testing.T) {
	var nth atomic.Int64
	server := service(t, func(w http.ResponseWriter, r *http.Request) {
		if nth.Add(1) == 3 {
			time.Sleep(50 * time.Millisecond)
		}
		sold(w, r)
	})
	p := plan(server.URL, 1, 10)
	p.Every = 10 * time.Millisecond
	h, err := load.Run(t.Context(), p, nil)
	if err != nil || len(h.Ops) != 10 {
		t.Fatalf("%d operations, %v", len(h.Ops), err)
	}
	for i, op := range h.Ops[1:] {
		if after := op.Call - h.Ops[i].Call; after < p.Every {
			t.Errorf("request %d came %v after its predecessor", i+2, after)
		}
	}
}
