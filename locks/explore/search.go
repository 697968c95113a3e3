// Package explore enumerates the schedules of a strategy: all orders in which the messages of its
// clients can reach the servers, with a bounded number of faults. It runs the code of the strategy
// and its scripts against servers in memory, with a clock of its own (testing/synctest).
package explore

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// Trial is a strategy, and how far a search goes.
type Trial struct {
	Strategy string `json:"strategy"`
	Bounds   Bounds `json:"bounds"`
	// Full runs also the schedules that differ from another one only in the order of independent moves.
	Full bool `json:"full,omitempty"`
}

// Result is what a search has found.
type Result struct {
	Trial
	Schedules int    `json:"schedules"`
	Oversold  int    `json:"oversold"`    // schedules that lose an update
	Stalled   int    `json:"stalled"`     // schedules in which a client waits in vain for the lock
	Aborted   int    `json:"aborted"`     // schedules in which a client gives up, and takes nothing
	Two       int    `json:"two_holders"` // schedules in which two clients hold the lock at the same time
	Complete  bool   `json:"complete"`    // these are all schedules within the bounds
	// Shortest is the shortest schedule that loses an update, the first of several, or nil.
	Shortest []Step `json:"shortest,omitempty"`
	// Outcomes counts the schedules by their outcome.
	Outcomes map[string]int `json:"-"`
	// Redundant counts the schedules that were not finished, because another one has the same effect.
	Redundant int `json:"-"`
}

// Step is one choice of a schedule. Token is short, such as A, lose-B.2 or time.
type Step struct {
	Token string `json:"token"`
	Text  string `json:"text"`
}

// Search enumerates all schedules within the bounds, until ctx ends. Schedules that differ only in
// the order of independent moves have the same effect, so it runs one of them (sleep sets: Godefroid,
// "Partial-Order Methods for the Verification of Concurrent Systems", 1996). It calls progress after
// each schedule.
func Search(ctx context.Context, t Trial, progress func(Result)) (Result, error) {
	r := Result{Trial: t, Outcomes: map[string]int{}}
	for s := (search{full: t.Full}); ctx.Err() == nil; {
		s.depth = 0
		outcome, finished, err := run(t, s.choose)
		switch {
		case err != nil:
			return r, err
		case s.diverged != nil:
			return r, fmt.Errorf("explore %s: %w", t.Strategy, s.diverged)
		case finished:
			r.add(outcome, s.path)
		default:
			r.Redundant++
		}
		if progress != nil {
			progress(r)
		}
		if !s.next() {
			r.Complete = true
			break
		}
	}
	return r, nil
}

// search is the path to the current schedule. Each schedule begins anew with the path.
type search struct {
	full     bool
	path     []*node
	depth    int
	diverged error
}

// node is a state on the path.
type node struct {
	moves  []move
	chosen int
	asleep []move // in this state, these moves lead to nothing new
}

func (s *search) choose(moves []move) int {
	s.depth++
	if s.depth <= len(s.path) {
		n := s.path[s.depth-1]
		if !slices.EqualFunc(moves, n.moves, move.same) {
			s.diverged = fmt.Errorf("step %d of a repeated schedule had the choice %s, and now it has %s", s.depth, texts(n.moves), texts(moves))
			return -1
		}
		return n.chosen
	}
	n := &node{moves: moves, chosen: -1}
	if s.depth > 1 && !s.full {
		n.asleep = s.path[s.depth-2].sleepAfter()
	}
	n.next()
	s.path = append(s.path, n)
	return n.chosen
}

// next changes the last choice of the path that can be changed. It returns false if there is none.
func (s *search) next() bool {
	for len(s.path) > 0 {
		if last := len(s.path) - 1; !s.path[last].next() {
			s.path = s.path[:last]
			continue
		}
		return true
	}
	return false
}

func texts(moves []move) string {
	var all []string
	for _, m := range moves {
		all = append(all, m.token+" ("+m.text+")")
	}
	return "[" + strings.Join(all, ", ") + "]"
}

// next chooses the next move that is not asleep. The former choice falls asleep. It returns false if
// none is left.
func (n *node) next() bool {
	if n.chosen >= 0 {
		n.asleep = append(n.asleep, n.moves[n.chosen])
	}
	for i := n.chosen + 1; i < len(n.moves); i++ {
		if !slices.ContainsFunc(n.asleep, n.moves[i].same) {
			n.chosen = i
			return true
		}
	}
	n.chosen = -1
	return false
}

// sleepAfter returns what is asleep after the chosen move: what is asleep here and independent of it.
func (n *node) sleepAfter() (asleep []move) {
	for _, m := range n.asleep {
		if m.independent(n.moves[n.chosen]) {
			asleep = append(asleep, m)
		}
	}
	return asleep
}

func (r *Result) add(o Outcome, path []*node) {
	r.Schedules++
	r.Outcomes[o.String()]++
	if slices.Contains(o.Ends, Stalled) {
		r.Stalled++
	}
	if slices.Contains(o.Ends, Aborted) {
		r.Aborted++
	}
	if o.Two {
		r.Two++
	}
	if !o.Oversold() {
		return
	}
	r.Oversold++
	if r.Shortest != nil && len(path) >= len(r.Shortest) {
		return
	}
	r.Shortest = nil
	for _, n := range path {
		r.Shortest = append(r.Shortest, n.moves[n.chosen].step())
	}
}

// Replay runs one schedule. It returns its steps, also if a token of the trail does not fit.
func Replay(t Trial, trail []string) (steps []Step, o Outcome, err error) {
	var wrong error
	o, finished, err := run(t, func(moves []move) int {
		if len(steps) == len(trail) {
			wrong = fmt.Errorf("the trail ends after %d steps, and could go on with %s", len(trail), texts(moves))
			return -1
		}
		token := trail[len(steps)]
		i := slices.IndexFunc(moves, func(m move) bool { return m.token == token })
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
