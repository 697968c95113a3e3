package experiment

import (
	"testing"

	"oversell/api"
	"oversell/lab/history"
)

func TestGrantedAnew(t *testing.T) {
	step := func(owner string, step api.Step) history.Event { return history.Event{Owner: owner, Step: step} }
	for _, test := range []struct {
		name   string
		events []history.Event
		want   int
	}{
		{"no events", nil, 0},
		{"one after the other", []history.Event{step("a", "granted"), step("a", "released"), step("b", "granted")}, 0},
		{"one waited", []history.Event{step("a", "granted"), step("b", "asked"), step("b", "granted")}, 0},
		{"one was rolled back twice", []history.Event{step("a", "granted"), step("b", "granted"), step("a", "granted"), step("a", "granted")}, 2},
	} {
		if got := grantedAnew(test.events); got != test.want {
			t.Errorf("%s: %d, want %d", test.name, got, test.want)
		}
	}
}
