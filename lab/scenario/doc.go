// Package scenario runs business cases of a shop that need a lock, such as a coupon that each user
// gets once. A scenario runs with each of its guards (ways to protect its invariant): no guard,
// wrong guards and right guards. It uses the service over HTTP only, and checks its invariant in
// the answers and in the tables.
//
// A new scenario is one file and one line in All. The file has a function that returns the
// Scenario, the load, and the check. If requests rarely race by themselves, the scenario calls
// race. This function pauses two requests at steps of the service until both overlap.
package scenario

import (
	"context"
	"fmt"
	"strings"

	"oversell/api"
	"oversell/lab/suggest"
)

// Scenario is a load with an invariant, and the guards that may protect it.
type Scenario struct {
	ID       string // as in `oversell run coupon`
	Title    api.Text
	Guards   []Guard
	Replicas int // the number of replicas that the scenario needs
	// Run reports a broken invariant in Result.Broken. An error means that the scenario did not run.
	Run func(ctx context.Context, service Service, guard Guard) (Result, error)
}

// Guard is one way to protect the scenario's invariant.
type Guard struct {
	ID    string
	About api.Text
	// A Safe guard must keep the invariant in every run, any other guard must break it in each.
	Safe bool
	// race pauses its first request at the step first, and its second request at the step second.
	first, second api.Step
}

func newGuard(id string, safe bool, first, second api.Step, en, zh string) Guard {
	return Guard{ID: id, About: api.Text{EN: en, ZH: zh}, Safe: safe, first: first, second: second}
}

// Result is the result of one run with one guard.
type Result struct {
	Scenario string `json:"scenario"`
	Guard    string `json:"guard"`
	Safe     bool   `json:"safe"`
	// Outcomes has the number of answers with each outcome.
	Outcomes map[string]int `json:"told"`
	// Broken says how the invariant was broken. It is empty if the invariant held.
	Broken []api.Text `json:"broken"`
	// Figures are further measurements. A unit is part of the name, as in took_s.
	Figures  map[string]float64 `json:"figures,omitempty"`
	Sentence api.Text           `json:"sentence"`
}

// Holds reports whether the invariant held.
func (r Result) Holds() bool { return len(r.Broken) == 0 }

// Violations is Broken as one English text: the sentences, separated by semicolons.
func (r Result) Violations() string {
	var sentences []string
	for _, b := range r.Broken {
		sentences = append(sentences, b.EN)
	}
	return strings.Join(sentences, "; ")
}

// AsClaimed reports whether a safe guard kept the invariant, or an unsafe one broke it.
func (r Result) AsClaimed() bool { return r.Holds() == r.Safe }

// Verdict is api.Holds, or api.Broken.
func (r Result) Verdict() api.Verdict {
	if r.Holds() {
		return api.Holds
	}
	return api.Broken
}

func newResult(scenario string, guard Guard) Result {
	return Result{Scenario: scenario, Guard: guard.ID, Safe: guard.Safe, Outcomes: map[string]int{}, Broken: []api.Text{}}
}

// addBroken adds a sentence to Broken. Both formats must use all of args.
func (r *Result) addBroken(en, zh string, args ...any) {
	r.Broken = append(r.Broken, api.Textf(en, zh, args...))
}

// describe appends text to the Sentence in both languages. Both formats must use all of args.
func (r *Result) describe(en, zh string, args ...any) {
	r.Sentence.EN += fmt.Sprintf(en, args...)
	r.Sentence.ZH += fmt.Sprintf(zh, args...)
}

// All lists the scenarios in the order of the documents that they come from.
func All() []Scenario { return []Scenario{Coupon(), Tickets(), Flash(), Recharge(), Granularity()} }

// Guard returns the guard with this id.
func (s Scenario) Guard(id string) (Guard, error) {
	g, err := suggest.Find("guard", id, s.Guards, func(g Guard) string { return g.ID })
	if err != nil {
		return g, fmt.Errorf("%s: %w", s.ID, err)
	}
	return g, nil
}
