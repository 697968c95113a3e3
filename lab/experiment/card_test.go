package experiment

import (
	"testing"

	"oversell/api"
)

func TestStepFor(t *testing.T) {
	plain, blind := Card{}, Card{api.Card{CriticalStep: api.Writing}}
	blind.Breaks = []api.Break{{Hazard: api.Crash, At: "reserved"}}
	for _, test := range []struct {
		card                    Card
		hazard, otherwise, want string
	}{
		{plain, "race", "read", "read"},
		{plain, "pause", "writing", "writing"},
		{blind, "race", "read", "writing"},
		{blind, "nesting", "asked", "asked"},
		{blind, "crash", "granted", "reserved"}, // the card names a more specific step for this hazard
		{blind, "overrun", "granted", "writing"},
	} {
		if got := test.card.stepFor(test.hazard, test.otherwise); got != test.want {
			t.Errorf("%s at %s on a card with the critical step %q: %s, want %s", test.hazard, test.otherwise, test.card.CriticalStep, got, test.want)
		}
	}
}
