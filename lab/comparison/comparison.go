// Package comparison runs the same load on one strategy after the other, over HTTP: it resets
// the stock, sends the load, judges the history, and returns the results.
package comparison

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"oversell/lab/history"
	"oversell/lab/load"
	"oversell/lab/report"
)

// MaxStock is the largest stock that the service allows.
const MaxStock = 1_000_000

// The time to read the stock after a run, and the pause between two attempts.
const (
	readTimeout = 15 * time.Second
	readPause   = 200 * time.Millisecond
)

// ErrPlan marks a plan that cannot be run.
var ErrPlan = errors.New("invalid run")

// Plan is a comparison: the same load on one strategy after the other.
type Plan struct {
	Target     string
	Token      string
	Strategies []string // none: the core ones, in the order of the catalogue
	All        bool     // none: all of them, with fewer requests for the slow ones
	Clients    int
	Loops      int
	Stock      int
	Qty        int       // pieces of each request; 0: one
	Rate       load.Rate // of an open loop; 0: a closed one
	RampUp     time.Duration
	Hold       time.Duration
	Wait       time.Duration
	Seed       int64
	// Sweep has the number of clients of each of several runs of a strategy. It replaces
	// Clients, Loops and Stock.
	Sweep    []int
	Machine  report.Machine
	Versions map[string]string

	length time.Duration // of a run in a sweep; 0: until all is sent
}

// Trial is the run of one strategy: its result and its history.
type Trial struct {
	Result  report.Result
	History history.History
}

// Watcher receives the progress, from one goroutine at a time.
type Watcher interface {
	Begin(strategy string, nth, of int)
	Progress(load.Progress)
	End(report.Result)
}

// Validate reports the first value that is out of bounds. The error wraps ErrPlan.
func (p Plan) Validate() error {
	if err := p.load("").Validate(); err != nil {
		return planError{err}
	}
	if p.Stock < 0 || p.Stock > MaxStock {
		return planError{fmt.Errorf("stock %d: must be 0 to %d", p.Stock, MaxStock)}
	}
	if p.Qty > maxQty {
		return planError{fmt.Errorf("qty %d: must be 1 to %d", p.Qty, maxQty)}
	}
	for _, clients := range p.Sweep {
		if err := p.at(clients).load("").Validate(); err != nil {
			return planError{fmt.Errorf("sweep: %w", err)}
		}
	}
	return nil
}

// maxQty is the largest quantity that the service sells to one request.
const maxQty = 100

// planError is an ErrPlan without a prefix.
type planError struct{ error }

func (planError) Is(target error) bool { return target == ErrPlan }

func (p Plan) load(strategy string) load.Plan {
	return load.Plan{
		Target: p.Target, Strategy: strategy, Product: product, Qty: cmp.Or(p.Qty, 1),
		Clients: p.Clients, Loops: p.Loops, Rate: p.Rate, RampUp: p.RampUp, Length: p.length, Hold: p.Hold, Wait: p.Wait, Seed: p.Seed,
	}
}

// A slow strategy sleeps between two attempts. When all strategies run, it gets a fifth of the
// requests and of the stock, and its requests wait longer.
const (
	slower   = 5
	slowWait = 60 * time.Second
)

// of returns the plan for this strategy.
func (p Plan) of(card Card) Plan {
	if p.All && card.Slow {
		loops := max(1, p.Loops/slower)
		p.Stock = p.Stock * loops / p.Loops
		p.Loops, p.Wait = loops, max(p.Wait, slowWait)
	}
	return p
}

// Run runs the plan and returns a trial for each strategy that was loaded.
//
// After an error that wraps ErrPlan, nothing was done. Any other error comes with the trials so
// far: that of ctx, and then the last trial is partial; or that of the service, if the stock
// could not be reset. A backend that is down is no error: the trial shows it.
func Run(ctx context.Context, p Plan, w Watcher) ([]Trial, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	s, err := openService(p.Target, p.Token)
	if err != nil {
		return nil, err
	}
	defer s.close()
	cards, err := s.strategies(ctx)
	if err != nil {
		return nil, err
	}
	chosen, err := choose(cards, p.Strategies, p.All)
	if err != nil {
		return nil, err
	}
	var trials []Trial
	runs := p.runs(chosen)
	for i, r := range runs {
		w.Begin(r.name, i+1, len(runs))
		t, err := r.plan.try(ctx, s, r.card, cards, w)
		if t != nil {
			trials = append(trials, *t)
			w.End(t.Result)
		}
		if err != nil {
			return trials, err
		}
	}
	return trials, nil
}

// run is the run of one strategy, or one point of its sweep.
type run struct {
	name string
	card Card
	plan Plan
}

func (p Plan) runs(chosen []Card) (runs []run) {
	for _, card := range chosen {
		if len(p.Sweep) == 0 {
			runs = append(runs, run{card.ID, card, p.of(card)})
		}
		for _, clients := range p.Sweep {
			runs = append(runs, run{fmt.Sprintf("%s x%d", card.ID, clients), card, p.at(clients)})
		}
	}
	return runs
}

// choose returns the cards of the wanted strategies, in the wanted order.
func choose(cards []Card, wanted []string, all bool) ([]Card, error) {
	switch {
	case all:
		return cards, nil
	case len(wanted) == 0:
		return slices.DeleteFunc(slices.Clone(cards), func(c Card) bool { return !c.Core }), nil
	}
	chosen := make([]Card, 0, len(wanted))
	for _, id := range wanted {
		i := slices.IndexFunc(cards, func(c Card) bool { return c.ID == id })
		if i < 0 {
			return nil, planError{fmt.Errorf("strategy %q does not exist: there are %s", id, ids(cards))}
		}
		chosen = append(chosen, cards[i])
	}
	return chosen, nil
}

func ids(cards []Card) string {
	names := make([]string, len(cards))
	for i, c := range cards {
		names[i] = c.ID
	}
	return strings.Join(names, ", ")
}

// try runs one strategy. If it returns no trial, nothing was sent.
func (p Plan) try(ctx context.Context, s *service, card Card, cards []Card, w Watcher) (*Trial, error) {
	before, err := s.reset(ctx, card.ID, p.Stock)
	if err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, fmt.Errorf("%s: %w", card.ID, err)
	}
	warnings := concerning(card, cards, before.Warnings)
	h, stopped := load.Run(ctx, p.load(card.ID), w.Progress)
	if stopped != nil && ctx.Err() == nil {
		return nil, stopped
	}
	// The result must have what was sold, also when the run was stopped.
	after, err := s.remaining(context.WithoutCancel(ctx), ctx, card.ID, h)
	if err != nil {
		warnings = append(warnings, "the stock could not be read after the run: "+err.Error())
	}
	var remaining *int
	if after != nil {
		remaining = &after.Count
	}
	result := report.Summarise(h, report.Setup{
		Safe: card.Safe, Stock: p.Stock, Qty: cmp.Or(p.Qty, 1), Remaining: remaining, Flushes: flushes(before, after),
		RampUp: p.RampUp, Hold: p.Hold, Wait: p.Wait, Seed: p.Seed, Target: p.Target,
		Machine: p.Machine, Versions: p.Versions, Warnings: warnings,
	})
	return &Trial{Result: result, History: h}, stopped
}

// concerning drops the warnings about other strategies.
func concerning(card Card, cards []Card, warnings []string) []string {
	return slices.DeleteFunc(warnings, func(warning string) bool {
		id, _, _ := strings.Cut(warning, ":")
		return id != card.ID && slices.ContainsFunc(cards, func(c Card) bool { return c.ID == id })
	})
}

// flushes returns the number of flushes since before. A server that was restarted counts from
// zero; its count until then is not known.
func flushes(before item, after *item) int {
	if after == nil || before.Flushes == nil || after.Flushes == nil {
		return 0
	}
	return int(max(0, *after.Flushes-*before.Flushes))
}

// remaining reads the stock after the run. It retries, because the database may be starting.
// If requests ended with an unknown outcome, replicas may still be working on them: then it
// waits until the count no longer changes.
func (s *service) remaining(ctx, impatient context.Context, strategy string, h history.History) (*item, error) {
	unsettled := history.Taken(h.Ops, history.Unknown) > 0
	timeout := readTimeout
	if impatient.Err() != nil {
		timeout /= 5
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	var last *item
	var failed error
	for {
		it, err := s.stock(ctx, strategy)
		switch {
		case err == nil && (!unsettled || last != nil && last.Count == it.Count):
			return &it, nil
		case err == nil:
			last = &it
		case ctx.Err() == nil:
			failed = err
		case last != nil:
			return last, nil
		default:
			return nil, cmp.Or(failed, err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(readPause):
		}
	}
}
