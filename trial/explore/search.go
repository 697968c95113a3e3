// Package explore enumerates the schedules of a strategy: all orders in which the messages of its
// clients can reach the servers, with a bounded number of faults. It runs the code of the strategy
// and its scripts against servers in memory, with a clock of its own (testing/synctest).
package explore

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"
)

// Scope is a strategy, and how far a search goes.
type Scope struct {
	Strategy string `json:"strategy"`
	Bounds   Bounds `json:"bounds"`
	// Full runs also the schedules that differ from another one only in the order of independent moves.
	Full bool `json:"full,omitempty"`
	// Random draws schedules in place of running all of them; nil runs all.
	Random *Random `json:"random,omitempty"`
	// Lock is the lock that Strategy names, if it is not in the catalogue.
	Lock *Lock `json:"-"`
}

// Result is what a search has found.
type Result struct {
	Scope
	Schedules int  `json:"schedules"`
	Oversold  int  `json:"oversold"`    // schedules that lose an update
	Stalled   int  `json:"stalled"`     // schedules in which a client waits in vain for the lock
	Aborted   int  `json:"aborted"`     // schedules in which a client gives up, and takes nothing
	Late      int  `json:"late"`        // schedules in which a client waits until a lease ends
	Two       int  `json:"two_holders"` // schedules in which two clients hold the lock at the same time
	Complete  bool `json:"complete"`    // these are all schedules within the bounds
	// Harm is the worst harm of any schedule, or empty. Shortest is the shortest schedule that does this
	// harm, the first of several, or nil.
	Harm     Harm   `json:"harm,omitempty"`
	Shortest []Step `json:"shortest,omitempty"`
	// Outcomes counts the schedules by their outcome.
	Outcomes map[string]int `json:"-"`
	// Redundant counts the schedules that were not finished, because another one has the same effect.
	Redundant int `json:"-"`
}

// Search enumerates all schedules within the bounds, until ctx ends. Schedules that differ only in
// the order of independent moves have the same effect, so it runs one of them (see race, and sleep sets:
// Godefroid, "Partial-Order Methods for the Verification of Concurrent Systems", 1996). It counts two
// holders if one of these orders has them. It calls progress after each schedule.
func Search(ctx context.Context, t Scope, progress func(Result)) (Result, error) {
	return newSearch(t, progress).run(ctx)
}

func (s *search) run(ctx context.Context) (Result, error) {
	r, err := newRunner(s.result.Scope)
	if err != nil {
		return Result{Scope: s.result.Scope}, err
	}
	if s.result.Random != nil {
		err = s.random(ctx, r)
	} else {
		err = s.all(ctx, r)
	}
	s.result.Complete = err == nil && ctx.Err() == nil && s.result.Random == nil
	return s.result, err
}

// all runs all schedules, divided into branches.
func (s *search) all(ctx context.Context, r *runner) error {
	branches, err := divide(ctx, r, s.result.Full)
	if err != nil {
		return err
	}
	workers, ctx := errgroup.WithContext(ctx)
	workers.SetLimit(runtime.GOMAXPROCS(0))
	for _, b := range branches {
		workers.Go(func() error {
			for more := true; more && ctx.Err() == nil; more = b.next() {
				if err := s.runOne(b, r); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return workers.Wait()
}

// search is what the workers share.
type search struct {
	progress func(Result)

	mu     sync.Mutex
	result Result
	first  []int // the choices of result.Shortest
}

func newSearch(t Scope, progress func(Result)) *search {
	return &search{progress: progress, result: Result{Scope: t, Outcomes: map[string]int{}}}
}

// runOne runs a schedule of a branch, and adds it to the result.
func (s *search) runOne(b *branch, r *runner) error {
	o, finished, err := b.run(r)
	if err != nil {
		return fmt.Errorf("explore %s: %w", s.result.Strategy, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if finished {
		s.compare(o, b.path)
		o.Two = o.Two || b.mayHaveTwoHolders()
		s.result.add(o)
	} else {
		s.result.Redundant++
	}
	if s.progress != nil {
		s.progress(s.result)
	}
	return nil
}

func (r *Result) add(o Ending) {
	r.Schedules++
	r.Outcomes[o.String()]++
	for _, kind := range kindsOfHarm() {
		if kind.done(o) {
			*kind.count(r)++
		}
	}
}

// Replay runs one schedule. It returns its steps, also if a token of the trail does not fit.
func Replay(t Scope, trail []string) (steps []Step, o Ending, err error) {
	r, err := newRunner(t)
	if err != nil {
		return nil, o, err
	}
	var wrong error
	o, finished, err := r.run(func(moves []move) int {
		if len(steps) == len(trail) {
			wrong = fmt.Errorf("the trail ends after %d steps, and could go on with %s", len(trail), texts(moves))
			return -1
		}
		token := trail[len(steps)]
		i := slices.IndexFunc(moves, func(m move) bool { return m.token() == token })
		if i < 0 {
			wrong = fmt.Errorf("step %d of the trail is %q, but only these are possible: %s", len(steps)+1, token, texts(moves))
			return -1
		}
		steps = append(steps, moves[i].step())
		return i
	})
	switch {
	case err != nil:
		return steps, o, err
	case wrong != nil:
		return steps, o, wrong
	case !finished || len(steps) < len(trail):
		return steps, o, fmt.Errorf("the schedule ended after %d of the %d steps", len(steps), len(trail))
	}
	return steps, o, nil
}
