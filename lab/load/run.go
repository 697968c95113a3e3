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

const progressInterval = 25 * time.Millisecond

// Progress counts the requests of a run since its beginning.
type Progress struct {
	Done, Total  int
	Sold, Failed int
	Took         []time.Duration // the response times since the last report, in no order
	Replicas     map[string]int  // number of answers by replica
}

// Run calls progress, which may be nil, every 25 ms and at the end, from one goroutine at a time.
//
// After ctx ends, clients send nothing more. A request without an answer a second later is unknown,
// and Run returns the history with the error of ctx. With any other error, nothing was sent.
func Run(ctx context.Context, p Plan, progress func(Progress)) (history.History, error) {
	if err := p.Validate(); err != nil {
		return history.History{}, fmt.Errorf("load: %w", err)
	}
	address, req, err := p.request()
	if err != nil {
		return history.History{}, err
	}
	count := tally{Progress: Progress{Total: p.Clients * p.Loops, Replicas: map[string]int{}}}
	stop, done := func() {}, func(*history.Op) {}
	if progress != nil {
		stop, done = count.report(progress), count.add
	}
	before, start := ReadUsage(), time.Now()
	records := make([][]history.Op, p.Clients)
	var clients sync.WaitGroup
	dues := make(chan time.Duration) // unbuffered: a due time goes to a client that is free
	if p.Rate > 0 {
		clients.Go(func() { p.pace(ctx, start, dues) })
	}
	var active atomic.Int64
	for position, i := range order(p.Seed, p.Clients) {
		clients.Go(func() {
			if Sleep(ctx, time.Until(start.Add(delay(p.RampUp, position, p.Clients)))) != nil {
				return
			}
			c := &client{id: i + 1, plan: p, request: req, start: start, active: &active}
			requests := c.closed(ctx)
			if p.Rate > 0 {
				requests = c.open(dues)
			}
			records[i] = c.run(ctx, requests, done)
		})
	}
	clients.Wait()
	stop()
	h := history.History{
		Strategy: p.Strategy, URL: address, Start: start, Clients: p.Clients, Loops: p.Loops,
		Rate: float64(p.Rate), Length: p.Length, Stopped: ctx.Err() != nil, Ops: history.Merge(records),
	}
	h.Load, h.Others = ReadUsage().Since(before)
	return h, context.Cause(ctx)
}

func order(seed int64, clients int) []int {
	return rand.New(rand.NewPCG(uint64(seed), 0)).Perm(clients) //nolint:gosec // an order, no secret
}

// delay spreads the starts evenly over the ramp-up, as in JMeter. The first client has no delay.
func delay(rampUp time.Duration, position, clients int) time.Duration {
	return time.Duration(float64(rampUp) * float64(position) / float64(clients))
}

// Sleep waits for d. It returns the error of ctx if that has ended.
func Sleep(ctx context.Context, d time.Duration) error {
	if d > 0 {
		select {
		case <-time.After(d):
		case <-ctx.Done():
		}
	}
	return ctx.Err()
}

// tally counts the requests of a run. Its response times are those since the last report.
type tally struct {
	mu sync.Mutex
	Progress
}

func (t *tally) add(op *history.Op) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.Done++
	t.Total = max(t.Total, t.Done) // with Until, more requests are sent
	t.Took = append(t.Took, op.Elapsed())
	if op.Replica != "" {
		t.Replicas[op.Replica]++
	}
	switch {
	case op.Outcome == history.OK:
		t.Sold++
	case op.Failed():
		t.Failed++
	}
}

func (t *tally) next() Progress {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := t.Progress
	p.Replicas, t.Took = maps.Clone(t.Replicas), nil
	return p
}

// report calls progress in intervals until stop is called, and then once more.
func (t *tally) report(progress func(Progress)) (stop func()) {
	var reporter sync.WaitGroup
	ctx, quit := context.WithCancel(context.Background())
	reporter.Go(func() {
		for Sleep(ctx, progressInterval) == nil {
			progress(t.next())
		}
		progress(t.next())
	})
	return func() { quit(); reporter.Wait() }
}
