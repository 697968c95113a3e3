package experiment

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"sync"
	"time"

	"oversell/api"
	"oversell/lab/history"
)

const (
	// waiters is the number of waiting requests, on two replicas.
	waiters = 60
	// quietPeriod is how long the waiters are observed while nothing happens.
	quietPeriod = time.Second
	// pollSamples is the number of samples before waiters are classified as polling. Waiters
	// that are expected to be quiet get up to quietSamples to become so.
	pollSamples, quietSamples = 4, 100
)

// polling counts the requests that waiters send to their backend while nothing happens.
func polling() Experiment {
	nothing := func(ctx context.Context, _ *queue) error {
		select {
		case <-ctx.Done():
		case <-time.After(quietPeriod):
		}
		return ctx.Err()
	}
	return Experiment{
		Hazard: "polling", Applies: lockers, run: measureEach("polling", "in a second without any change", pollSamples, nothing),
		Title: "60 wait while nothing happens", Shows: "requests to the backend that are not needed",
	}
}

// herd counts the requests that one release causes.
func herd() Experiment {
	release := func(ctx context.Context, q *queue) error {
		if err := q.bed.replica(0).ResumeAll(ctx); err != nil {
			return err
		}
		err := eventually(ctx, "the next holder", func() bool { return q.stoppedOn(ctx, 1) || q.stoppedOn(ctx, 2) })
		return errors.Join(err, q.awaitQuiet(ctx, quietSamples))
	}
	return Experiment{
		Hazard: "herd", Applies: claimed("herd"), run: measureEach("herd", "because of one release", quietSamples, release),
		Title: "one release before 60 waiters", Shows: "every waiter wakes up, and all but one in vain (thundering herd)",
	}
}

// casStorm sends many requests at once that compete by compare-and-set.
func casStorm() Experiment {
	run := func(ctx context.Context, bed *Testbed, subjects []Subject, seed int64) (results []Result, err error) {
		for _, s := range subjects {
			if s.product, err = bed.addProduct(ctx, 0, waiters); err != nil {
				return results, err
			}
			ops := make([]history.Op, waiters)
			var all sync.WaitGroup
			for i := range ops {
				all.Go(func() { ops[i] = bed.buy(ctx, i%3, s, url.Values{"wait": {"30s"}}) })
			}
			all.Wait()
			retries := 0
			for _, op := range ops {
				retries += op.Retries
			}
			left, err := bed.replica(0).Count(ctx, s.Card.ID, s.product)
			if err != nil {
				return results, err
			}
			sold := history.Taken(ops, history.OK)
			result := Result{
				Hazard: "cas-storm", Strategy: s.Card.ID, Seed: seed, Claim: s.Card.Claim("cas-storm"), Verdict: Safe, Sold: sold, Taken: waiters - left,
				Why:       fmt.Sprintf("%d requests at once: %d sold, %d failed attempts", waiters, sold, retries),
				Recording: history.Recording{Start: bed.rec.start, Stock: waiters, Ops: ops, Events: bed.rec.eventsOf(api.Key(s.product))},
			}
			// A third of the attempts fail, or more.
			if retries > sold/2 {
				result.Verdict = Wasteful
			}
			results = append(results, result)
		}
		return results, ctx.Err()
	}
	return Experiment{
		Hazard: "cas-storm", Applies: claimed("cas-storm"), run: run,
		Title: "60 requests at once", Shows: "failed attempts for each sale",
	}
}

// queue is a holder that is stopped on the first replica, and the waiters behind it.
type queue struct {
	Subject
	bed *Testbed
	key string
}

// measureEach measures one strategy after the other, because a backend counts the requests
// of all together.
func measureEach(hazard, when string, samples int, do func(context.Context, *queue) error) func(context.Context, *Testbed, []Subject, int64) ([]Result, error) {
	return func(ctx context.Context, bed *Testbed, subjects []Subject, seed int64) (results []Result, err error) {
		for _, s := range subjects {
			asked, q, err := measure(ctx, bed, s, samples, do)
			if err != nil {
				return results, fmt.Errorf("%s: %w", s.Name(), err)
			}
			result := Result{
				Hazard: hazard, Strategy: s.Card.ID, Seed: seed, Claim: s.Card.Claim(hazard), Verdict: Safe,
				Why:       fmt.Sprintf("%d waiters sent %d requests to the backends %s", waiters, asked, when),
				Recording: history.Recording{Start: bed.rec.start, Events: bed.rec.eventsOf(q.key)},
			}
			// A few requests are normal: a renewal, a heartbeat, the release itself.
			if asked > waiters*3/2 {
				result.Verdict = Wasteful
			}
			results = append(results, result)
		}
		return results, nil
	}
}

// measure counts the requests to the backends while do runs.
func measure(ctx context.Context, bed *Testbed, s Subject, samples int, do func(context.Context, *queue) error) (asked int64, q *queue, err error) {
	if s.product, err = bed.addProduct(ctx, 0, 2*waiters); err != nil {
		return 0, nil, err
	}
	if bed.ownCost == 0 {
		if err := bed.measureOwnCost(ctx); err != nil {
			return 0, nil, err
		}
	}
	q = &queue{Subject: s, bed: bed, key: api.Key(s.product)}
	// At the end every request is cancelled: what it would buy does not matter.
	buying, hangUp := context.WithCancel(ctx)
	var all sync.WaitGroup
	defer all.Wait()
	defer func() { _ = bed.heal(context.WithoutCancel(ctx)) }()
	defer hangUp()
	// The holder stops, and so does the next one. A request stops only at failpoints that
	// were armed before it came.
	for n := range 3 {
		if err := bed.stop(ctx, n, s, "read"); err != nil {
			return 0, q, err
		}
	}
	all.Go(func() { _ = bed.buy(buying, 0, s, nil) })
	if err := eventually(ctx, "the holder has the lock", func() bool { return q.stoppedOn(ctx, 0) }); err != nil {
		return 0, q, err
	}
	for i := range waiters {
		all.Go(func() { _ = bed.buy(buying, 1+i%2, s, url.Values{"wait": {"60s"}}) })
	}
	if err := eventually(ctx, "all waiters wait", q.waiting); err != nil {
		return 0, q, err
	}
	if err := q.awaitQuiet(ctx, samples); err != nil {
		return 0, q, err
	}
	before, err := bed.backendRequests(ctx)
	if err != nil {
		return 0, q, err
	}
	if err := do(ctx, q); err != nil {
		return 0, q, err
	}
	after, err := bed.backendRequests(ctx)
	return after - before, q, err
}

// waiting reports whether every waiter has requested the lock, and is queued where the
// strategy has a queue.
func (q *queue) waiting() bool {
	owners := map[string]bool{}
	for _, e := range q.bed.rec.eventsOf(q.key) {
		if e.Replica != name(0) && e.Step == queued(q.Card) {
			owners[e.Owner] = true
		}
	}
	return len(owners) == waiters
}

func (q *queue) stoppedOn(ctx context.Context, n int) bool {
	owners, err := q.bed.stopped(ctx, n)
	return err == nil && owners[q.key] != ""
}

// awaitQuiet waits until the waiters send no more requests, for a number of samples at most:
// polling waiters never stop.
func (q *queue) awaitQuiet(ctx context.Context, samples int) error {
	before, err := q.bed.backendRequests(ctx)
	for range samples {
		if err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
		var after int64
		if after, err = q.bed.backendRequests(ctx); err == nil && after-before <= 2 {
			return nil
		}
		before = after
	}
	return err
}
