package experiment

import (
	"testing"
	"time"

	"oversell/api"
	"oversell/lab/history"
	"oversell/lab/player"
)

// TestJudgeWaiter judges a waiter whose session has expired, by its answer.
func TestJudgeWaiter(t *testing.T) {
	const sent = 5 * time.Second // the next waiter
	for _, test := range []struct {
		name   string
		waiter history.Op
		next   history.Outcome
		want   api.Verdict
	}{
		{"it has queued again and sold", history.Op{Outcome: history.OK, Return: sent + time.Second}, history.OK, api.Safe},
		{"it left at once", history.Op{Outcome: history.Refused, Return: sent - time.Second}, history.OK, api.Safe},
		{"it waited in vain", history.Op{Outcome: history.Refused, Return: sent + time.Second}, history.OK, api.Stalled},
		{"it blocks the next one", history.Op{Outcome: history.Refused, Return: sent - time.Second}, history.Refused, api.Stalled},
	} {
		p := &played{Played: &player.Played{Ops: [roles]history.Op{contender: {Outcome: test.next, Call: sent}, observer: test.waiter}}}
		got := api.Safe
		if found := judgeWaiter(p); found != nil {
			got = found.verdict
			if found.why.EN == "" || found.why.ZH == "" {
				t.Errorf("%s: no explanation in both languages: %v", test.name, found.why)
			}
		}
		if got != test.want {
			t.Errorf("%s: %s, want %s", test.name, got, test.want)
		}
	}
}

// TestAppliesOnTrial checks to which locks of other programs the hazards apply.
func TestAppliesOnTrial(t *testing.T) {
	lock := func(backend string, lease, renews bool) api.Card {
		return api.Card{Family: "adapter", Scope: api.ScopeShared, Locker: true, Backends: []string{"mysql", backend}, Lease: lease, Renews: renews}
	}
	redis, plain, zookeeper, named := lock("redis", true, true), lock("redis", true, false), lock("zookeeper", true, true), lock("mysql", false, false)
	for _, test := range []struct {
		Experiment
		want [4]bool
	}{
		{operator(), [4]bool{true, true, true, true}},
		{operatorAtWrite(), [4]bool{true, true, true, false}},
		{starved(), [4]bool{true, true, true, false}},
		{renewalReply(), [4]bool{true, false, true, false}},
		{waiterSession(), [4]bool{false, false, true, false}},
	} {
		for i, card := range []api.Card{redis, plain, zookeeper, named} {
			if got := test.AppliesTo(card); got != test.want[i] {
				t.Errorf("%s applies to lock %d: %t, want %t", test.Hazard, i, got, test.want[i])
			}
		}
	}
}
