package load

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"oversell/lab/history"
)

// every is how often a run tells its progress.
const every = 100 * time.Millisecond

// Progress is how far a run has come, in requests. All of it is counted since the run
// began: what happened in between is the difference of two.
type Progress struct {
	Done, Total  int
	Sold, Failed int
	Took         Histogram
	Replicas     map[string]int // the answers of each
	Last         Sale
}

// Sale is who has sold last: the lock's last owner, as far as a client can tell.
type Sale struct {
	Replica string `json:"replica"`
	Client  int    `json:"client"`
}

// Run drives the plan and returns what every client saw. Progress, which may be nil, is
// called from one goroutine at a time, ten times a second and once at the end.
//
// When ctx ends, the clients ask no more. What they still wait for a second later is
// recorded as unknown, and the history comes back with ctx's error: it is what really
// happened, only shorter. Any other error means that nothing was sent.
func Run(ctx context.Context, p Plan, progress func(Progress)) (history.History, error) {
	if err := p.Validate(); err != nil {
		return history.History{}, fmt.Errorf("load: %w", err)
	}
	address, req, err := p.request()
	if err != nil {
		return history.History{}, err
	}
	var count tally
	stop := count.report(p.Clients*p.Loops, progress)
	start := time.Now()
	records := make([][]history.Op, p.Clients)
	var clients sync.WaitGroup
	// It holds nothing: a due time is taken by a client that is free, or waits.
	dues := make(chan time.Duration)
	if p.Rate > 0 {
		clients.Go(func() { p.pace(ctx, start, dues) })
	}
	var active atomic.Int64
	for place, i := range order(p.Seed, p.Clients) {
		clients.Go(func() {
			if !sleep(ctx, time.Until(start.Add(delay(p.RampUp, place, p.Clients)))) {
				return
			}
			c := &client{id: i + 1, plan: p, request: req, start: start, words: map[string]string{}, active: &active}
			turns := c.closed(ctx)
			if p.Rate > 0 {
				turns = c.open(dues)
			}
			records[i] = c.run(ctx, turns, count.add)
		})
	}
	clients.Wait()
	stop()
	h := history.History{
		Strategy: p.Strategy, URL: address, Start: start, Clients: p.Clients, Loops: p.Loops,
		Rate: float64(p.Rate), Length: p.Length, Stopped: ctx.Err() != nil, Ops: history.Merge(records),
	}
	return h, context.Cause(ctx)
}

// order is the seed's order of the clients.
func order(seed int64, clients int) []int {
	return rand.New(rand.NewPCG(uint64(seed), 0)).Perm(clients) //nolint:gosec // an order, no secret
}

// delay spreads the starts evenly over the ramp-up, the first at once, as JMeter does.
func delay(rampUp time.Duration, place, clients int) time.Duration {
	return time.Duration(float64(rampUp) * float64(place) / float64(clients))
}

func sleep(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// tally counts as the clients go, so that the progress costs them next to nothing.
type tally struct {
	done, sold, failed atomic.Int64
	took               counters
	last               atomic.Pointer[history.Op]

	mu       sync.Mutex
	replicas map[string]int
}

func (t *tally) add(op *history.Op) {
	t.done.Add(1)
	t.took.add(op.Elapsed())
	if op.Replica != "" {
		t.mu.Lock()
		if t.replicas == nil {
			t.replicas = map[string]int{}
		}
		t.replicas[op.Replica]++
		t.mu.Unlock()
	}
	switch {
	case op.Outcome == history.OK:
		t.sold.Add(1)
		t.last.Store(op)
	case op.Failed():
		t.failed.Add(1)
	}
}

// report starts telling the progress and returns what ends it, with a last word.
func (t *tally) report(total int, progress func(Progress)) (stop func()) {
	if progress == nil {
		return func() {}
	}
	tell := func() {
		p := Progress{
			Done: int(t.done.Load()), Total: total,
			Sold: int(t.sold.Load()), Failed: int(t.failed.Load()),
			Took: t.took.read(),
		}
		t.mu.Lock()
		p.Replicas = maps.Clone(t.replicas)
		t.mu.Unlock()
		if op := t.last.Load(); op != nil {
			p.Last = Sale{op.Replica, op.Client}
		}
		progress(p)
	}
	quit, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				tell()
			case <-quit:
				tell()
				return
			}
		}
	}()
	return func() { close(quit); <-ended }
}
