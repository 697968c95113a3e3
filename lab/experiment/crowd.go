package experiment

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"sync"
	"time"

	"oversell/lab/history"
	"oversell/lab/replica"
)

const (
	// crowd is how many wait, on two replicas.
	crowd = 60
	// quiet is how long they are watched while nothing happens.
	quiet = time.Second
	// restless waiters are looked at so often before they are taken for what they are,
	// calm ones until they are.
	restless, calm = 4, 100
)

// polling counts what waiters ask their backend while nothing happens at all.
func polling() Experiment {
	nothing := func(ctx context.Context, _ *queue) error {
		select {
		case <-ctx.Done():
		case <-time.After(quiet):
		}
		return ctx.Err() //nolint:wrapcheck // says all
	}
	return Experiment{
		Number: 19, Hazard: "polling", Applies: lockers, run: oneByOne("polling", "in a second without news", restless, nothing),
		Title: "60 wait while nothing happens", Shows: "questions to the backend that nobody needed to ask",
	}
}

// herd counts what one release makes them ask.
func herd() Experiment {
	release := func(ctx context.Context, q *queue) error {
		if err := q.class.replica(0).GoOn(ctx); err != nil {
			return err
		}
		err := eventually(ctx, "the next holder", func() bool { return q.stoppedOn(ctx, 1) || q.stoppedOn(ctx, 2) })
		return errors.Join(err, q.settle(ctx, calm))
	}
	return Experiment{
		Number: 19, Hazard: "herd", Applies: claimed("herd"), run: oneByOne("herd", "because of one release", calm, release),
		Title: "one release before 60 waiters", Shows: "everybody is woken, and all but one for nothing",
	}
}

// casStorm lets all try at once to be the one whose compare-and-set wins.
func casStorm() Experiment {
	run := func(ctx context.Context, c *Class, subjects []Subject, seed int64) (cells []Cell, err error) {
		for _, s := range subjects {
			if s.product, err = c.stocked(ctx, 0, crowd); err != nil {
				return cells, err
			}
			ops := make([]history.Op, crowd)
			var all sync.WaitGroup
			for i := range ops {
				all.Go(func() { ops[i] = c.buy(ctx, i%3, s, url.Values{"wait": {"30s"}}) })
			}
			all.Wait()
			retries := 0
			for _, op := range ops {
				retries += op.Retries
			}
			left, err := c.replica(0).Count(ctx, s.Card.ID, s.product)
			if err != nil {
				return cells, err
			}
			sold := history.Taken(ops, history.OK)
			cell := Cell{
				Number: 4, Hazard: "cas-storm", Strategy: s.Card.ID, Seed: seed, Claim: s.Card.Claim("cas-storm"), Verdict: Safe, Sold: sold, Taken: crowd - left,
				Why:       fmt.Sprintf("%d at once: %d sold, %d attempts for nothing", crowd, sold, retries),
				Recording: history.Recording{Start: c.rec.start, Stock: crowd, Ops: ops, Events: c.rec.of(replica.Key(s.product))},
			}
			// A third of the work is thrown away, or more.
			if retries > sold/2 {
				cell.Verdict = Wasteful
			}
			cells = append(cells, cell)
		}
		return cells, ctx.Err() //nolint:wrapcheck // says all
	}
	return Experiment{
		Number: 4, Hazard: "cas-storm", Applies: claimed("cas-storm"), run: run,
		Title: "60 requests at once", Shows: "attempts that a rival has beaten, for each sale",
	}
}

// queue is a holder that is held up on the first replica, and a crowd behind it.
type queue struct {
	Subject
	class *Class
	key   string
}

// oneByOne measures one strategy after the other: a backend counts for all together.
func oneByOne(hazard, when string, looks int, do func(context.Context, *queue) error) func(context.Context, *Class, []Subject, int64) ([]Cell, error) {
	return func(ctx context.Context, c *Class, subjects []Subject, seed int64) (cells []Cell, err error) {
		for _, s := range subjects {
			asked, q, err := measure(ctx, c, s, looks, do)
			if err != nil {
				return cells, fmt.Errorf("%s: %w", s.Name(), err)
			}
			cell := Cell{
				Number: 19, Hazard: hazard, Strategy: s.Card.ID, Seed: seed, Claim: s.Card.Claim(hazard), Verdict: Safe,
				Why:       fmt.Sprintf("%d waiters asked the backends %d times %s", crowd, asked, when),
				Recording: history.Recording{Start: c.rec.start, Events: c.rec.of(q.key)},
			}
			// A renewal, a heartbeat, the release itself: a few are no crowd.
			if asked > crowd*3/2 {
				cell.Verdict = Wasteful
			}
			cells = append(cells, cell)
		}
		return cells, nil
	}
}

// measure counts what the backends are asked while do lasts.
func measure(ctx context.Context, c *Class, s Subject, looks int, do func(context.Context, *queue) error) (asked int64, q *queue, err error) {
	if s.product, err = c.stocked(ctx, 0, 2*crowd); err != nil {
		return 0, nil, err
	}
	if c.ownCost == 0 {
		if err := c.learnOwnCost(ctx); err != nil {
			return 0, nil, err
		}
	}
	q = &queue{Subject: s, class: c, key: replica.Key(s.product)}
	// On the way out everybody hangs up: what they would buy is of no interest.
	buying, hangUp := context.WithCancel(ctx)
	var all sync.WaitGroup
	defer all.Wait()
	defer func() { _ = c.heal(context.WithoutCancel(ctx)) }()
	defer hangUp()
	// The holder stays where it is, and whoever comes next. Requests heed the failpoints
	// that are there when they come.
	for n := range 3 {
		if err := c.stop(ctx, n, s, "read"); err != nil {
			return 0, q, err
		}
	}
	all.Go(func() { _ = c.buy(buying, 0, s, nil) })
	if err := eventually(ctx, "the holder has it", func() bool { return q.stoppedOn(ctx, 0) }); err != nil {
		return 0, q, err
	}
	for i := range crowd {
		all.Go(func() { _ = c.buy(buying, 1+i%2, s, url.Values{"wait": {"60s"}}) })
	}
	if err := eventually(ctx, "the crowd waits", q.waiting); err != nil {
		return 0, q, err
	}
	if err := q.settle(ctx, looks); err != nil {
		return 0, q, err
	}
	before, err := c.questions(ctx)
	if err != nil {
		return 0, q, err
	}
	if err := do(ctx, q); err != nil {
		return 0, q, err
	}
	after, err := c.questions(ctx)
	return after - before, q, err
}

// waiting says whether the whole crowd has asked, and has a place where there is a line.
func (q *queue) waiting() bool {
	owners := map[string]bool{}
	for _, e := range q.class.rec.of(q.key) {
		if e.Replica != name(0) && e.Step == queued(q.Card) {
			owners[e.Owner] = true
		}
	}
	return len(owners) == crowd
}

func (q *queue) stoppedOn(ctx context.Context, n int) bool {
	owners, err := q.class.stopped(ctx, n)
	return err == nil && owners[q.key] != ""
}

// settle waits until nobody asks any more, but for so many looks only: some never stop.
func (q *queue) settle(ctx context.Context, looks int) error {
	before, err := q.class.questions(ctx)
	for range looks {
		if err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err() //nolint:wrapcheck // says all
		case <-time.After(100 * time.Millisecond):
		}
		var after int64
		if after, err = q.class.questions(ctx); err == nil && after-before <= 2 {
			return nil
		}
		before = after
	}
	return err
}
