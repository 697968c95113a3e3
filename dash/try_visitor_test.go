package dash

import (
	"errors"
	"testing"
	"time"
)

// A visitor's spans come from the steps that a replica tells of; where it tells of none,
// or too late, from the answer.
func TestVisitor(t *testing.T) {
	t.Parallel()
	begun := time.Now()
	at := func(s float64) time.Time { return begun.Add(time.Duration(s * float64(time.Second))) }
	permit := action{ID: "permit", Holds: true}
	held := told{Outcome: "held", Replica: "replica-1", WaitedMS: 1000}
	steps := func(v *visitor) {
		v.heard("asked", "replica-1", at(0))
		v.heard("granted", "replica-1", at(1))
		v.heard("released", "replica-1", at(3))
	}
	answer := func(a told, err error) func(*visitor) {
		return func(v *visitor) { v.answered(permit, a, err, begun, at(3)) }
	}
	for _, c := range []struct {
		name         string
		does         []func(*visitor)
		state        state
		waited, held float64
	}{
		{"steps, then the answer", []func(*visitor){steps, answer(held, nil)}, gone, 1, 2},
		{"no steps", []func(*visitor){answer(held, nil)}, gone, 1, 2},
		{"the answer, then its steps", []func(*visitor){answer(held, nil), steps}, gone, 1, 2},
		{"gave up", []func(*visitor){func(v *visitor) { v.heard("asked", "", at(0)) }, answer(told{Outcome: "not_acquired"}, nil)}, failed, 3, 0},
		{"no answer", []func(*visitor){answer(told{}, errors.New("cut"))}, failed, 3, 0},
	} {
		v := &visitor{Action: permit}
		v.enter(sent, begun)
		for _, do := range c.does {
			do(v)
		}
		l := draw([]*visitor{v}, at(9)).Lanes[0]
		if v.State != c.state || l.Waited != c.waited || l.Held != c.held || v.Said.EN == "" || v.Said.ZH == "" {
			t.Errorf("%s: %s, waited %v, held %v, %q", c.name, v.State, l.Waited, l.Held, v.Said)
		}
	}
}

// Answers of requests that were under way together come in any order.
func TestLearn(t *testing.T) {
	t.Parallel()
	now := time.Now()
	at := func(s int) time.Time { return now.Add(time.Duration(s) * time.Second) }
	left := func(n int) told { return told{Outcome: "counted", Left: &n} }
	latch := spot{Primitive: "latch"}
	primitivesPage := &primitivesPage{facts: map[spot]fact{}}
	for _, c := range []struct {
		answer     told
		begun, end int
		want       int
	}{
		{left(5), 0, 1, 5},
		{left(3), 2, 4, 3},
		{left(4), 2, 5, 3}, // it was counted before
		{left(0), 6, 7, 0},
		{left(5), 8, 9, 5}, // the next latch
	} {
		primitivesPage.learn(latch, c.answer, at(c.begun), at(c.end))
		if got := *primitivesPage.facts[latch].Left; got != c.want {
			t.Errorf("after %d: %d left, want %d", *c.answer.Left, got, c.want)
		}
	}
	value := func(n, version int64) told { return told{Outcome: "changed", After: &n, Version: version} }
	counter := spot{Primitive: "counter"}
	primitivesPage.learn(counter, value(2, 2), at(0), at(2))
	primitivesPage.learn(counter, value(1, 1), at(0), at(3))
	if got := *primitivesPage.facts[counter].Value; got != 2 {
		t.Errorf("the counter is %d", got)
	}
}
