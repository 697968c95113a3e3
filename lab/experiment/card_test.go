package experiment

import (
	"testing"
	"time"

	"oversell/api"
	"oversell/lab/history"
)

func TestStepFor(t *testing.T) {
	plain, blind := api.Card{}, api.Card{CriticalStep: api.Writing}
	blind.Breaks = []api.Break{{Hazard: api.Crash, At: "reserved"}}
	for _, test := range []struct {
		card            api.Card
		hazard          api.Hazard
		otherwise, want api.Step
	}{
		{plain, "race", "read", "read"},
		{plain, "pause", "writing", "writing"},
		{blind, "race", "read", "writing"},
		{blind, "nesting", "asked", "asked"},
		{blind, "crash", "granted", "reserved"}, // the card names a more specific step for this hazard
		{blind, "overrun", "granted", "writing"},
	} {
		if got := test.card.StepFor(test.hazard, test.otherwise); got != test.want {
			t.Errorf("%s at %s on a card with the critical step %q: %s, want %s", test.hazard, test.otherwise, test.card.CriticalStep, got, test.want)
		}
	}
}

func TestLeased(t *testing.T) {
	for _, test := range []struct {
		card   api.Card
		lease  time.Duration
		renews bool
	}{
		{api.Card{ID: "redis", Locker: true, Lease: true, Renews: true, Backends: []string{"mysql", "redis"}}, Lease, true},
		{api.Card{ID: "redis-lua", Locker: true, Lease: true, Backends: []string{"mysql", "redis"}}, Lease, false},
		{api.Card{ID: "zk", Locker: true, Backends: []string{"mysql", "zookeeper"}}, ZKSession, true},
		{api.Card{ID: "mutex", Locker: true, Backends: []string{"mysql"}}, 0, false},
		{api.Card{ID: "reservation", Lease: true, Backends: []string{"mysql"}}, 0, false}, // no lock
	} {
		if got := Leased(test.card, history.Recording{}); got.Lease != test.lease || got.Renews != test.renews {
			t.Errorf("%s: %v, renewed: %v", test.card.ID, got.Lease, got.Renews)
		}
	}
}
