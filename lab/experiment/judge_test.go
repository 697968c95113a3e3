package experiment

import (
	"testing"
	"time"

	"oversell/api"
	"oversell/lab/history"
	"oversell/lab/player"
)

// TestCause checks the sentence for a lost update: who held the lock, or who read too early.
func TestCause(t *testing.T) {
	step := func(at int, owner string, step api.Step) history.Event {
		return history.Event{At: time.Duration(at) * time.Millisecond, Owner: owner, Step: step}
	}
	lock := []history.Event{
		step(1, "h", api.Granted), step(2, "h", api.Read), step(3, "c", api.Granted), step(4, "c", api.Read), step(5, "c", api.Written), step(6, "h", api.Written),
	}
	unlocked := []history.Event{step(2, "h", api.Read), step(4, "c", api.Read), step(5, "c", api.Written), step(6, "h", api.Written)}
	for _, test := range []struct {
		name   string
		lease  bool
		events []history.Event
		want   string
	}{
		{"a lease", true, lock, pauseLapse().EN},
		{"a lock without a lease", false, lock, "The contender acquired the lock although the holder had not released it, and both wrote."},
		{"no lock", false, unlocked, "Both requests read the stock before the other had written it."},
		{"no late write", true, lock[:5], ""},
	} {
		p := &played{Played: &player.Played{Subject: player.Subject{Card: api.Card{Lease: test.lease}}, Stopped: "h", Recording: history.Recording{Events: test.events}}}
		got := (&round{Experiment: pause()}).cause(p)
		if got.EN != test.want || (got.ZH == "") != (test.want == "") {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
}

// TestAnswers checks that only answers that are no sale are named, in both languages.
func TestAnswers(t *testing.T) {
	p := &played{Played: &player.Played{Ops: [roles]history.Op{
		holder:    {Outcome: history.Unknown, Reason: history.Broken, Detail: "dial tcp 127.0.0.1:1"},
		contender: {Outcome: history.Refused, Reason: history.NotAcquired, Detail: "lock stock:1 not acquired within 5s"},
	}}}
	const en = "The holder may have sold: the connection broke before the answer. The contender did not sell: lock stock:1 not acquired within 5s."
	const zh = "持锁者可能已卖出：应答之前连接中断。竞争者没有卖出：没有拿到锁（lock stock:1 not acquired within 5s）。"
	if got := p.answers(); got.EN != en || got.ZH != zh {
		t.Errorf("%s\n%s", got.EN, got.ZH)
	}
	p.Ops = [roles]history.Op{holder: {Outcome: history.OK}, contender: {Outcome: history.OK}}
	if got := p.answers(); got != (api.Text{}) {
		t.Errorf("two sales: %s", got)
	}
}
