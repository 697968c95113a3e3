// Package comparison runs strategies of one service against the same load: it resets the
// load it, keep the history, judge it, and report.
package comparison

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"oversell/api"
	"oversell/lab/history"
	"oversell/lab/load"
	"oversell/lab/report"
)

// MaxStock is the most that the service lets a lab put on the shelf.
const MaxStock = 1_000_000

// Patience with a shop whose stock can't be read after a run, and the pause in between.
const (
	readPatience = 15 * time.Second
	readPause    = 200 * time.Millisecond
)

// ErrPlan marks a plan that can't be run as it was asked for.
var ErrPlan = errors.New("invalid run")

// Plan is a comparison: the same load on one strategy after the other.
type Plan struct {
	Target     string
	Token      string
	Strategies []string // none: the core ones, in the order of the ladder
	All        bool     // none: the whole ladder, with fewer requests for the slow ones
	Clients    int
	Loops      int
	Stock      int
	Qty        int       // pieces of each request; 0: one
	Rate       load.Rate // of an open loop; 0: a closed one
	RampUp     time.Duration
	Hold       time.Duration
	Wait       time.Duration
	Seed       int64
	// Sweep are the clients of several runs of each strategy, instead of the one with
	// Clients; Loops and Stock are then the sweep's own choice.
	Sweep    []int
	Machine  report.Machine
	Versions map[string]string

	length time.Duration // of a run in a sweep; 0: until all is sent
}

// Trial is one strategy's run: the figures, and the evidence for them.
type Trial struct {
	Result  report.Result
	History history.History
}

// Watcher is told how the comparison goes, from one goroutine at a time.
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

// maxQty is the most that the service sells to one request.
const maxQty = 100

// planError is an ErrPlan that says only what is wrong.
type planError struct{ error }

func (planError) Is(target error) bool { return target == ErrPlan }

func (p Plan) load(strategy string) load.Plan {
	return load.Plan{
		Target: p.Target, Strategy: strategy, Product: product, Qty: cmp.Or(p.Qty, 1),
		Clients: p.Clients, Loops: p.Loops, Rate: p.Rate, RampUp: p.RampUp, Length: p.length, Hold: p.Hold, Wait: p.Wait, Seed: p.Seed,
	}
}

// A slow strategy sleeps between two tries: of the whole ladder it gets a fifth of the
// requests and of the stock, and its requests a long patience.
const (
	slower       = 5
	slowPatience = 60 * time.Second
)

// of is the plan as this strategy gets it.
func (p Plan) of(card api.Card) Plan {
	if p.All && card.Slow {
		loops := max(1, p.Loops/slower)
		p.Stock = p.Stock * loops / p.Loops
		p.Loops, p.Wait = loops, max(p.Wait, slowPatience)
	}
	return p
}

// Run runs the plan and returns a trial for each strategy that was loaded.
//
// An error that wraps ErrPlan means that nothing was done. With any other the trials so
// far come with it: ctx's when it ended, and the last trial is then partial; or the
// shop's when the stock could not be reset. A backend that is down is no error: it is
// what the trial shows.
func Run(ctx context.Context, p Plan, w Watcher) ([]Trial, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	s, err := openService(p.Target, p.Token)
	if err != nil {
		return nil, err
	}
	defer s.HTTP.CloseIdleConnections()
	cards, err := strategies(ctx, s)
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

// run is one strategy's, or one point of its sweep.
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

// choose finds the wanted cards, in the wanted order.
func choose(cards []api.Card, wanted []string, all bool) ([]api.Card, error) {
	switch {
	case all:
		return cards, nil
	case len(wanted) == 0:
		return slices.DeleteFunc(slices.Clone(cards), func(c api.Card) bool { return !c.Core }), nil
	}
	chosen := make([]api.Card, 0, len(wanted))
	for _, id := range wanted {
		i := slices.IndexFunc(cards, func(c api.Card) bool { return c.ID == id })
		if i < 0 {
			return nil, planError{fmt.Errorf("unknown strategy %q: there are %s", id, ids(cards))}
		}
		chosen = append(chosen, cards[i])
	}
	return chosen, nil
}

func ids(cards []api.Card) string {
	names := make([]string, len(cards))
	for i, c := range cards {
		names[i] = c.ID
	}
	return strings.Join(names, ", ")
}

// try runs one strategy. Without a trial nothing was sent.
func (p Plan) try(ctx context.Context, s api.Client, card api.Card, cards []api.Card, w Watcher) (*Trial, error) {
	before, err := reset(ctx, s, card.ID, p.Stock)
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
	// What was sold must be told even when the run was stopped.
	after, err := remaining(context.WithoutCancel(ctx), ctx, s, card.ID, h)
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

// concerning leaves out what the shop warns of for the sake of other strategies.
func concerning(card api.Card, cards []api.Card, warnings []string) []string {
	return slices.DeleteFunc(warnings, func(warning string) bool {
		id, _, _ := strings.Cut(warning, ":")
		return id != card.ID && slices.ContainsFunc(cards, func(c api.Card) bool { return c.ID == id })
	})
}

// flushes counts those since before. A server that was restarted counts anew; what it had
// executed until then is not known.
func flushes(before api.Stock, after *api.Stock) int {
	if after == nil || before.Flushes == nil || after.Flushes == nil {
		return 0
	}
	return int(max(0, *after.Flushes-*before.Flushes))
}

// remaining reads the stock when the run is over. The database may be on its way back,
// so it asks for a while; and where requests ended unknown, replicas may still be at
// work on them, so it waits until the count stands still.
func remaining(ctx, impatient context.Context, s api.Client, strategy string, h history.History) (*api.Stock, error) {
	restless := history.Taken(h.Ops, history.Unknown) > 0
	patience := readPatience
	if impatient.Err() != nil {
		patience /= 5
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var last *api.Stock
	var failed error
	for {
		it, err := s.Stock(ctx, strategy, product)
		switch {
		case err == nil && (!restless || last != nil && last.Count == it.Count):
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
