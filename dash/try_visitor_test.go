package dash

import (
	"errors"
	"testing"
	"time"
)

// TestVisitor: the replica reports the steps of a request, and the page draws from them how long
// the request waited and held. If steps are missing or late, the page uses the answer instead.
func TestVisitor(t *testing.T) {
	t.Parallel()
	begun := time.Now()
	at := func(s float64) time.Time { return begun.Add(time.Duration(s * float64(time.Second))) }
	permit := action{ID: "permit", Holds: true}
	held := answer{Outcome: "held", Replica: "replica-1", WaitedMS: 1000}
	steps := func(v *visitor) {
		v.stepped("asked", "replica-1", at(0))
		v.stepped("granted", "replica-1", at(1))
		v.stepped("released", "replica-1", at(3))
	}
	reply := func(a answer, err error) func(*visitor) {
		return func(v *visitor) { v.answered(permit, a, err, begun, at(3)) }
	}
	for _, c := range []struct {
		name         string
		does         []func(*visitor)
		state        state
		waited, held float64
	}{
		{"steps, then the answer", []func(*visitor){steps, reply(held, nil)}, gone, 1, 2},
		{"no steps", []func(*visitor){reply(held, nil)}, gone, 1, 2},
		{"the answer, then its steps", []func(*visitor){reply(held, nil), steps}, gone, 1, 2},
		{"gave up", []func(*visitor){func(v *visitor) { v.stepped("asked", "", at(0)) }, reply(answer{Outcome: "not_acquired", rejected: true}, nil)}, failed, 3, 0},
		{"no answer", []func(*visitor){reply(answer{}, errors.New("cut"))}, failed, 3, 0},
	} {
		v := &visitor{order: order{Action: permit}}
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

// TestObserve: answers of concurrent requests may arrive in any order. The page must keep the
// newest value of a latch or counter.
func TestObserve(t *testing.T) {
	t.Parallel()
	now := time.Now()
	at := func(s int) time.Time { return now.Add(time.Duration(s) * time.Second) }
	left := func(n int64) answer { return answer{Outcome: "counted", Left: &n} }
	latch := target{Primitive: "latch"}
	primitivesPage := &primitivesPage{observed: map[target]observed{}}
	for _, c := range []struct {
		answer     answer
		begun, end int
		want       int64
	}{
		{left(5), 0, 1, 5},
		{left(3), 2, 4, 3},
		{left(4), 2, 5, 3}, // an older answer
		{left(0), 6, 7, 0},
		{left(5), 8, 9, 5}, // the next latch
	} {
		primitivesPage.observe(latch, c.answer, at(c.begun), at(c.end))
		if got := *primitivesPage.observed[latch].Left; got != c.want {
			t.Errorf("after %d: %d left, want %d", *c.answer.Left, got, c.want)
		}
	}
	value := func(n, version int64) answer { return answer{Outcome: "changed", After: &n, Version: version} }
	counter := target{Primitive: "counter"}
	primitivesPage.observe(counter, value(2, 2), at(0), at(2))
	primitivesPage.observe(counter, value(1, 1), at(0), at(3))
	if got := *primitivesPage.observed[counter].Value; got != 2 {
		t.Errorf("the counter is %d", got)
	}
}
