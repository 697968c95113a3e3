// Package scenario tells what happens in a shop around a lock: a coupon that each user gets
// once, a recharge that is credited once. A scenario is run once for each of its guards: off,
// wrong and right. It sees the service over HTTP only, and judges its invariant twice: by what
// the customers were told, and by what the tables hold afterwards.
//
// A scenario is a file: a func that gives the Scenario, the load, and the judgement. A race
// that shows only sometimes is made sure by a step (see duel.go), never by a sleep. A new one
// is a file here and a line in All.
package scenario

import (
	"context"
	"fmt"
	"strings"

	"oversell/lab/report"
)

// Scenario is one story, with the guards it can be told with.
type Scenario struct {
	ID     string // as in `oversell run coupon`
	Title  report.Sentence
	Guards []Guard
	// Replicas is how many the story needs.
	Replicas int
	// Run resets what the story is about, brings the load, and judges. An error says that
	// it could not be run; that the invariant was broken is no error but a Result.
	Run func(ctx context.Context, shop Shop, guard Guard) (Result, error)
}

// Guard is one way to keep the scenario's invariant.
type Guard struct {
	ID string
	// Safe guards claim that the invariant holds, come what may in this scenario. The
	// others must break it every time: the scenario sees to that.
	Safe bool
	// first and second are the steps at which the two requests of a duel are held up.
	first, second string
}

// Result is what came of one run with one guard.
type Result struct {
	Scenario string `json:"scenario"`
	Guard    string `json:"guard"`
	Safe     bool   `json:"safe"`
	// Told counts the outcomes that the customers were told.
	Told map[string]int `json:"told"`
	// Broken says how the invariant was broken, a sentence each; empty: it held.
	Broken []string `json:"broken"`
	// Figures are what the scenario measured besides, by name with the unit in it.
	Figures  map[string]float64 `json:"figures,omitempty"`
	Sentence report.Sentence    `json:"sentence"`
}

// Holds reports whether the invariant held.
func (r Result) Holds() bool { return len(r.Broken) == 0 }

// AsClaimed reports whether a safe guard held, and any other one broke.
func (r Result) AsClaimed() bool { return r.Holds() == r.Safe }

// newResult begins the result of one run.
func newResult(scenario string, guard Guard) Result {
	return Result{Scenario: scenario, Guard: guard.ID, Safe: guard.Safe, Told: map[string]int{}, Broken: []string{}}
}

// broke notes how the invariant was broken.
func (r *Result) broke(format string, args ...any) {
	r.Broken = append(r.Broken, fmt.Sprintf(format, args...))
}

// All lists the scenarios in the order of the documents that tell them.
func All() []Scenario { return []Scenario{Coupon(), Tickets(), Flash(), Recharge(), Grain()} }

// Guard finds one by its id.
func (s Scenario) Guard(id string) (Guard, error) {
	var ids []string
	for _, g := range s.Guards {
		if g.ID == id {
			return g, nil
		}
		ids = append(ids, g.ID)
	}
	return Guard{}, fmt.Errorf("%s has no guard %q: there are %s", s.ID, id, strings.Join(ids, ", "))
}
