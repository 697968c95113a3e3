package api

import "testing"

func TestStepFor(t *testing.T) {
	plain, blind := Card{}, Card{CriticalStep: Writing}
	blind.Breaks = []Break{{Hazard: Crash, At: "reserved"}}
	for _, test := range []struct {
		card            Card
		hazard          Hazard
		otherwise, want Step
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
