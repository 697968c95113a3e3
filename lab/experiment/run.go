package experiment

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"oversell/api"
	"oversell/lab/chaos"
	"oversell/lab/check"
	"oversell/lab/fault"
	"oversell/lab/history"
	"oversell/lab/load"
	"oversell/lab/player"
	"oversell/lab/rig"
	"oversell/lab/stall"
	"oversell/lab/suggest"
)

// ErrLeftOut marks a plan that ran without the experiments whose servers are not installed.
var ErrLeftOut = errors.New("some experiments were left out")

// Selection selects the experiments to run.
type Selection struct {
	Hazards    []api.Hazard // empty means all
	Strategies []string     // empty means all that the hazard applies to
	// Fenced selects only strategies that have a fence, and uses the fence. If Fenced is false and
	// Strategies is empty, some experiments run with and without the fence: see Experiment.Fenced.
	Fenced bool
	// Adapter is the command of the lock behind the strategy adapter, as the user typed it. If it is
	// set, experiments with fences run with and without the fence, too.
	Adapter string
	Moves   chaos.Plan // in place of hazards: a plan that the user has made up
	Seed    int64      // of the first round
	Seeds   int        // number of rounds, each with its own seed
}

// Watcher receives the progress of a plan, from one goroutine at a time.
type Watcher interface {
	Begin(e Experiment, subjects, nth, of int)
	End(e Experiment, results []Result, took time.Duration)
	// LeftOut is called instead of End, once for each experiment whose servers are not installed.
	LeftOut(e Experiment, why error)
}

// Validate checks, before a lab is started, that the hazards exist and that one of them applies to
// one of the strategies. The error wraps load.ErrPlan.
func (p Selection) Validate(cards []api.Card) error {
	_, err := p.choose(cards)
	return err
}

// choose returns the plan's experiments, or the error of Validate.
func (p Selection) choose(cards []api.Card) (chosen []Experiment, err error) {
	for _, hazard := range p.Hazards {
		e, err := suggest.Find("hazard", string(hazard), WithRandomPlans(), func(e Experiment) string { return string(e.Hazard) })
		if err != nil {
			return nil, load.InvalidPlan(err)
		}
		chosen = append(chosen, e)
	}
	switch {
	case len(p.Moves) > 0:
		chosen = []Experiment{MadeUp(p.Moves)}
	case len(p.Hazards) == 0:
		chosen = All()
	}
	for _, id := range p.Strategies {
		if _, err := suggest.Find("strategy", id, cards, func(c api.Card) string { return c.ID }); err != nil {
			return nil, load.InvalidPlan(err)
		}
	}
	if err := p.checkSteps(cards); err != nil {
		return nil, load.InvalidPlan(err)
	}
	if slices.ContainsFunc(chosen, func(e Experiment) bool { return len(p.subjects(e, cards)) > 0 }) {
		return chosen, nil
	}
	text := "no hazard applies to "
	if len(p.Hazards) > 0 {
		text = "hazard " + api.JoinHazards(p.Hazards, ", ") + " does not apply to "
	}
	switch {
	case len(p.Strategies) > 0:
		text += "strategy " + strings.Join(p.Strategies, ", ")
	case p.Fenced:
		text += "any strategy"
	default:
		text += "any of our strategies, only to a lock on trial: see oversell judge"
	}
	if p.Fenced {
		text += " with --fenced, which needs a strategy with a fencing token"
	}
	return nil, load.InvalidPlan(errors.New(text))
}

// checkSteps checks that each step of a plan that the user has made up is one of a strategy of the plan.
func (p Selection) checkSteps(cards []api.Card) error {
	steps := []api.Step{api.Queued, api.Part, api.Released}
	for _, c := range cards {
		if len(p.Strategies) == 0 || slices.Contains(p.Strategies, c.ID) {
			steps = append(steps, player.StepsOf(c)...)
		}
	}
	slices.Sort(steps)
	for _, m := range p.Moves {
		if m.At != "" && !slices.Contains(steps, m.At) {
			return fmt.Errorf("no request can stop at %q; the steps: %q", m.At, slices.Compact(steps))
		}
	}
	return nil
}

// Perform performs the selected experiments: each in its lab, again if the machine was too busy, by its load or else by its
// plan (see play). It skips experiments with results in the store, and heals the testbed after each experiment. The
// error wraps ErrLeftOut if the servers of some experiments are not installed.
func Perform(ctx context.Context, bed *player.Testbed, p Selection, store *ResultStore, w Watcher) error {
	chosen, err := p.choose(bed.Cards)
	if err != nil {
		return err
	}
	return p.perform(ctx, bed, chosen, store, w)
}

func (p Selection) perform(ctx context.Context, bed *player.Testbed, chosen []Experiment, store *ResultStore, w Watcher) error {
	rounds := max(1, p.Seeds)
	leftOut := map[api.Hazard]error{}
	for round := range rounds {
		for i, e := range chosen {
			seed := p.Seed + int64(round)
			subjects := p.subjects(e, bed.Cards)
			subjects = slices.DeleteFunc(subjects, func(s player.Subject) bool { return store.has(e.Hazard, s, seed) })
			if len(subjects) == 0 || leftOut[e.Hazard] != nil {
				continue
			}
			began := time.Now()
			w.Begin(e, len(subjects), round*len(chosen)+i+1, rounds*len(chosen))
			results, err := e.inItsLab(ctx, bed, subjects, seed)
			if errors.Is(err, rig.ErrMissing) && len(chosen) > 1 {
				leftOut[e.Hazard] = fmt.Errorf("experiment %s was left out: %w", e.Hazard, err)
				w.LeftOut(e, err)
				continue
			}
			if err != nil {
				return fmt.Errorf("experiment %s: %w", e.Hazard, err)
			}
			for i := range results {
				results[i].Adapter = p.Adapter
			}
			slices.SortStableFunc(results, func(a, b Result) int { return position(bed.Cards, a) - position(bed.Cards, b) })
			if err := store.add(results); err != nil {
				return err
			}
			bed.Forget()
			w.End(e, results, time.Since(began))
		}
	}
	if len(leftOut) > 0 {
		return fmt.Errorf("%w: %w", ErrLeftOut, errors.Join(slices.Collect(maps.Values(leftOut))...))
	}
	return nil
}

// inItsLab performs an experiment in a lab of its own, if it needs one.
func (e Experiment) inItsLab(ctx context.Context, bed *player.Testbed, subjects []player.Subject, seed int64) (results []Result, err error) {
	if e.Lab == nil {
		return e.unlessBusy(ctx, bed, subjects, seed)
	}
	own, err := rig.Start(ctx, e.Lab(bed.Rig.Config()))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, own.Close()) }()
	ownBed, err := player.Open(ctx, own)
	if err != nil {
		return nil, err
	}
	defer ownBed.Close()
	return e.unlessBusy(ctx, ownBed, subjects, seed)
}

// unlessBusy repeats runs that contradict a claim, or that a lock on trial fails without a claim, if this process got no
// processor for a while: renewals may have been late. If that happens at each attempt, these runs are inconclusive. A
// campaign of random plans does this for each plan.
func (e Experiment) unlessBusy(ctx context.Context, bed *player.Testbed, subjects []player.Subject, seed int64) (results []Result, err error) {
	if e.Hazard == Chaos {
		return e.once(ctx, bed, subjects, seed)
	}
	doubtful := func(r Result) bool {
		return slices.ContainsFunc(subjects, func(s player.Subject) bool {
			return r.Name() == s.Name() && (r.contradicts() || s.Card.OnTrial() && r.Claim == api.Silent && r.Verdict.Failed())
		})
	}
	busy := stall.Repeat(ctx, stall.Longest, bed.Stalled, func() (_, late bool) {
		results = slices.DeleteFunc(results, doubtful) // from the second attempt on
		again, failed := e.once(ctx, bed, subjects, seed)
		results, err = append(results, again...), failed
		subjects = slices.DeleteFunc(slices.Clone(subjects), func(s player.Subject) bool {
			return !slices.ContainsFunc(again, func(r Result) bool { return r.Name() == s.Name() && doubtful(r) })
		})
		return err == nil && len(subjects) > 0, false
	})
	for i, r := range results {
		if busy && doubtful(r) {
			results[i].Verdict, results[i].Invariant = api.Inconclusive, ""
			results[i].Why = api.Joined(api.Text{EN: "This machine was too busy for renewals.", ZH: "这台机器太忙，续期可能来不及。"}, r.Why)
		}
	}
	return results, err
}

func (e Experiment) once(ctx context.Context, bed *player.Testbed, subjects []player.Subject, seed int64) ([]Result, error) {
	before := bed.LostEvents()
	r := &round{Experiment: e, bed: bed, subjects: subjects, seed: seed}
	perform := e.perform
	if perform == nil {
		perform = func(ctx context.Context, r *round) ([]Result, error) { return r.play(ctx) }
	}
	results, err := perform(ctx, r)
	// Count lost events after heal, which waits for all streams: only then are all losses known.
	err = errors.Join(err, bed.Heal(context.WithoutCancel(ctx)))
	lost := bed.LostEvents() - before
	for i := range results {
		results[i] = results[i].withLostEvents(lost)
		results[i].MySQL = bed.MySQL
	}
	return results, err
}

// round is one pass of an experiment with a seed: a run of each of its subjects.
type round struct {
	Experiment
	bed      *player.Testbed
	subjects []player.Subject
	seed     int64

	on         [roles]int    // the replica of each role
	countOn    int           // the replica at which the remaining stock is read
	span       history.Span  // the fault of a load
	injectedAt time.Duration // of a load, on the recording's clock
	faults     []fault.Fault // of a load, which must have landed
	missed     error         // why none of these faults has landed
}

// with returns a round of the same experiment for these subjects.
func (r *round) with(subjects ...player.Subject) *round {
	return &round{Experiment: r.Experiment, bed: r.bed, seed: r.seed, subjects: subjects}
}

// each calls f for one subject after the other. It gives each subject a new product.
func (r *round) each(ctx context.Context, pieces int, f func(player.Subject) (Result, error)) (results []Result, err error) {
	for _, s := range r.subjects {
		if s.Product, err = r.bed.AddProduct(ctx, 0, pieces); err != nil {
			return results, err
		}
		result, err := f(s)
		if errors.Is(err, errNotMeasurable) {
			continue
		}
		if err != nil {
			return results, fmt.Errorf("%s: %w", s.Name(), err)
		}
		results = append(results, result)
	}
	return results, ctx.Err()
}

// safe returns the result of a run in which nothing is found.
func (r *round) safe(s player.Subject, rec history.Recording) Result {
	if r.lease > 0 && rec.Lease == player.Lease {
		rec.Lease = r.lease
	}
	return Result{
		Hazard: r.Hazard, Strategy: s.Card.ID, Fenced: s.Fenced, Seed: r.seed, Claim: r.Claim(s.Card, s.Fenced), Verdict: api.Safe, Recording: rec,
	}
}

// recording returns the recording of a strategy under a load, with the time of the fault.
func (r *round) recording(s player.Subject, pieces int, ops []history.Op) history.Recording {
	rec := r.bed.Recording(s, pieces, ops)
	if r.span.What != "" {
		rec.Spans = []history.Span{r.span}
	}
	return rec
}

// count sets Sold and Taken of result. It reads the remaining stock on the replica through.
func (r *round) count(ctx context.Context, through int, s player.Subject, result *Result) (check.Conservation, error) {
	left, err := r.bed.Replica(through).Count(ctx, s.Card.ID, s.Product)
	if err != nil {
		return check.Conservation{}, err
	}
	stock := check.Stock(result.Recording.Ops, result.Recording.Stock, left)
	result.Sold, result.Taken = stock.Sold, stock.Initial-left
	return stock, nil
}

// position returns the place of a result: in the order of the catalogue of strategies, a run with the fence after one
// without.
func position(cards []api.Card, result Result) int {
	at := 2 * slices.IndexFunc(cards, func(c api.Card) bool { return c.ID == result.Strategy })
	if result.Fenced {
		at++
	}
	return at
}

func (p Selection) subjects(e Experiment, cards []api.Card) (subjects []player.Subject) {
	for _, card := range cards {
		if !e.AppliesTo(card) || len(p.Strategies) > 0 && !slices.Contains(p.Strategies, card.ID) {
			continue
		}
		if !p.Fenced {
			subjects = append(subjects, player.Subject{Card: card})
		}
		if card.Fenced && (p.Fenced || e.Fenced && (len(p.Strategies) == 0 || p.Adapter != "")) {
			subjects = append(subjects, player.Subject{Card: card, Fenced: true})
		}
	}
	return subjects
}
