// Package comparison sends the same load to one strategy after the other, over HTTP. For each
// strategy, it resets the stock, sends the load, and judges the history.
package comparison

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"oversell/api"
	"oversell/lab/history"
	"oversell/lab/load"
	"oversell/lab/measure"
	"oversell/lab/suggest"
)

// The service accepts at most MaxStock pieces of stock, and maxQty pieces in one request.
const (
	MaxStock = 1_000_000
	maxQty   = 100
)

// Plan has the parameters of a comparison.
type Plan struct {
	// Plan is the load of each strategy. Its strategy and product need not be set, and a Qty of 0 means one. Only
	// strategies with a lease per request get the Lease, and only those that poll get the Pause.
	load.Plan

	Token      string
	Strategies []string // empty means the core strategies
	All        bool     // runs all strategies, with fewer requests for the slow ones
	Stock      int
	// Sweep runs each strategy with each number of clients. It replaces Clients, Loops and Stock.
	Sweep []int

	measure.Conditions

	// During, if set, runs during the load of each strategy. The load goes on until it has returned.
	// Then each replica must sell once more without a wait: else a lock was left behind.
	During func(context.Context) error
}

// Measurement is the run of one strategy.
type Measurement struct {
	Result  measure.Result
	History history.History
	// LeftBehind says why a sale after Plan.During failed. Empty means that it sold.
	LeftBehind string
}

// Watcher receives the progress of the runs, from one goroutine at a time.
type Watcher interface {
	Begin(strategy string, nth, of int)
	Progress(load.Progress)
	End(measure.Result)
}

// Validate reports the first value that is out of bounds. The error wraps load.ErrPlan.
func (p Plan) Validate() error {
	if err := p.load("").Validate(); err != nil {
		return load.InvalidPlan(err)
	}
	if p.Stock < 0 || p.Stock > MaxStock {
		return load.InvalidPlan(fmt.Errorf("stock %d: must be 0 to %d", p.Stock, MaxStock))
	}
	if p.Qty > maxQty {
		return load.InvalidPlan(fmt.Errorf("qty %d: must be 1 to %d", p.Qty, maxQty))
	}
	for _, clients := range p.Sweep {
		if err := p.at(clients).load("").Validate(); err != nil {
			return load.InvalidPlan(fmt.Errorf("sweep: %w", err))
		}
	}
	if err := load.CheckOpenFiles(slices.Max(append([]int{p.Clients}, p.Sweep...))); err != nil {
		return load.InvalidPlan(err)
	}
	return nil
}

func (p Plan) load(strategy string) load.Plan {
	l := p.Plan
	l.Strategy, l.Product, l.Qty = strategy, product, cmp.Or(p.Qty, 1)
	return l
}

// of returns the plan for a strategy. With All, a strategy that sleeps between two attempts gets
// a fifth of the requests and of the stock. With All or During, its requests wait longer.
func (p Plan) of(card api.Card) Plan {
	if p.All && card.Slow {
		loops := max(1, p.Loops/5)
		p.Stock = p.Stock * loops / p.Loops
		p.Loops = loops
	}
	if (p.All || p.During != nil) && card.Slow {
		p.Wait = max(p.Wait, time.Minute)
	}
	return p
}

// Run runs the plan and returns a measurement for each strategy that got requests.
//
// If the error wraps load.ErrPlan, no request was sent. With any other error, Run also returns the
// measurements so far. Either ctx ended and the last measurement is partial, or the stock could not be reset.
// An unavailable backend is part of the measurement, and no error.
func Run(ctx context.Context, p Plan, w Watcher) ([]Measurement, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	service, cards, err := connect(ctx, p.Target, p.Token)
	if err != nil {
		return nil, err
	}
	defer service.HTTP.CloseIdleConnections()
	chosen, err := Choose(cards, p.Strategies, p.All)
	if err != nil {
		return nil, err
	}
	if len(p.Sweep) > 0 {
		restore, err := keepStock(ctx, service)
		if err != nil {
			return nil, err
		}
		defer restore()
	}
	var measurements []Measurement
	runs := p.runs(chosen)
	for i, r := range runs {
		w.Begin(r.name, i+1, len(runs))
		t, err := r.plan.try(ctx, service, r.card, cards, w)
		if t != nil {
			measurements = append(measurements, *t)
			w.End(t.Result)
		}
		if err != nil {
			return measurements, err
		}
	}
	return measurements, nil
}

// run is the run of one strategy. In a sweep, it is the run with one number of clients.
type run struct {
	name string
	card api.Card
	plan Plan
}

func (p Plan) runs(chosen []api.Card) (runs []run) {
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

// Choose returns all cards, or those of the wanted strategies in this order, or without wanted
// those of the core strategies. An error wraps load.ErrPlan.
func Choose(cards []api.Card, wanted []string, all bool) (chosen []api.Card, err error) {
	switch {
	case all:
		return cards, nil
	case len(wanted) == 0:
		return slices.DeleteFunc(slices.Clone(cards), func(c api.Card) bool { return !c.Core }), nil
	}
	for _, id := range wanted {
		card, err := suggest.Find("strategy", id, cards, func(c api.Card) string { return c.ID })
		if err != nil {
			return nil, load.InvalidPlan(err)
		}
		chosen = append(chosen, card)
	}
	return chosen, nil
}

// try runs one strategy. If try returns no measurement, it sent none of the plan's requests.
func (p Plan) try(ctx context.Context, service api.Client, card api.Card, cards []api.Card, w Watcher) (*Measurement, error) {
	if !card.LeasePerRequest {
		p.Lease = 0 // the strategy would reject it
	}
	if !card.BrokenBy(api.Polling) {
		p.Pause = 0 // likewise
	}
	before, err := reset(ctx, service, card.ID, p.Stock)
	if err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, fmt.Errorf("%s: %w", card.ID, err)
	}
	// The reset also warns about other strategies that it could not clear. Drop those warnings.
	warnings := slices.DeleteFunc(before.Warnings, func(warning string) bool {
		id, _, _ := strings.Cut(warning, ":")
		return id != card.ID && slices.ContainsFunc(cards, func(c api.Card) bool { return c.ID == id })
	})
	h, stopped, during := p.send(ctx, card.ID, w)
	if stopped != nil && !h.Stopped {
		return nil, stopped // nothing was sent
	}
	// The work takes longer than the lease, and the card says that this breaks the strategy. The default lease
	// is not known here.
	overrun := p.Lease > 0 && p.Hold >= p.Lease && card.BrokenBy(api.Overrun)
	setup := measure.Setup{
		Plan: p.load(card.ID), Conditions: p.Conditions, Stock: p.Stock,
		Safe: card.Safe, SafeAlone: slices.Contains(card.Protects, api.Race), Overrun: overrun,
	}
	// The stock is read also when the run was stopped, because the result needs it.
	after, err := readStock(ctx, service, card.ID, h)
	if err != nil {
		warnings = append(warnings, "the stock could not be read after the run: "+err.Error())
	} else {
		setup.Remaining = &after.Count
		if before.Flushes != nil && after.Flushes != nil {
			setup.Flushes = int(max(0, *after.Flushes-*before.Flushes)) // a restarted server counts from 0
		}
	}
	setup.Warnings = warnings
	t := &Measurement{Result: measure.Summarise(h, setup), History: h}
	if p.During != nil && during == nil && stopped == nil {
		t.LeftBehind = sellAtOnce(ctx, service, card.ID)
	}
	return t, cmp.Or(stopped, during)
}

// send sends the load of one strategy, during Plan.During if that is set.
func (p Plan) send(ctx context.Context, strategy string, w Watcher) (h history.History, stopped, during error) {
	plan := p.load(strategy)
	if p.During == nil {
		h, stopped = load.Run(ctx, plan, w.Progress)
		return h, stopped, nil
	}
	done := make(chan struct{})
	plan.Until = done
	go func() {
		defer close(done)
		during = p.During(ctx)
	}()
	h, stopped = load.Run(ctx, plan, w.Progress)
	<-done
	return h, stopped, during
}

// sellAtOnce sells once more with a wait far below the lease of a lock that was left behind. It does
// so three times, so that a balancer of three replicas sends a request to each.
func sellAtOnce(ctx context.Context, service api.Client, strategy string) (failed string) {
	for range 3 {
		op := load.Buy(ctx, service, strategy, product, url.Values{"wait": {"1s"}}, time.Now())
		if op.Outcome != history.OK {
			return cmp.Or(op.Detail, op.Reason)
		}
	}
	return ""
}

// readStock reads the stock even after ctx has ended, and retries while the database starts. After
// an unknown outcome, a replica may still sell, so readStock waits until the count is stable.
func readStock(ctx context.Context, service api.Client, strategy string, h history.History) (*api.Stock, error) {
	timeout := 15 * time.Second
	if ctx.Err() != nil {
		timeout /= 5
	}
	unsettled := history.Taken(h.Ops, history.Unknown) > 0
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout)
	defer cancel()
	var last *api.Stock
	var failed error
	for {
		now, err := service.Stock(ctx, strategy, product)
		switch {
		case err == nil && (!unsettled || last != nil && last.Count == now.Count):
			return &now, nil
		case err == nil:
			last = &now
		case ctx.Err() == nil:
			failed = err
		case last != nil:
			return last, nil
		default:
			return nil, cmp.Or(failed, err)
		}
		_ = load.Sleep(ctx, 200*time.Millisecond)
	}
}
