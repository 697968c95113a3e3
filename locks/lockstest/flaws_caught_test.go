package lockstest_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"oversell/locks"
	"oversell/locks/lockstest"
)

// TestFlaws: each flaw is caught by the checks that are meant for it, and by no
// other. may are those that see it or not, as chance has it.
func TestFlaws(t *testing.T) {
	t.Parallel()
	f := openFair(t)
	tests := []struct {
		flaw        flaw
		caught, may []string
	}{
		{flaw: letsEverybodyIn, caught: []string{}},
		{flaw: onlyNextDoor, caught: []string{}},
		{flaw: hurries, caught: []string{}},
		{flaw: haunts, caught: []string{}},
		{flaw: hidesTheCause, caught: []string{}},
		{flaw: forgetsItsGrant, caught: []string{}},
		{flaw: releasesForTheLiving, caught: []string{}},
		{flaw: holdsTwice, caught: []string{}},
		{flaw: freesStrangers, caught: []string{}},
		{flaw: neverExpires, caught: []string{}},
		{flaw: neverRenews, caught: []string{}},
		{flaw: keepsTheLossQuiet, caught: []string{}},
		{flaw: fenceStandsStill, caught: []string{}},
		{flaw: waitsForItself, caught: []string{}},
		{flaw: readsEarly, caught: []string{}},
		{flaw: releasesEarly, caught: []string{}},
		{flaw: writesWithoutFence, caught: []string{}},
		{flaw: sellsAir, caught: []string{}},
		{flaw: forgetsToRelease, caught: []string{}},
		{flaw: deniesReEntry, caught: []string{}},
		{flaw: deniesFence, caught: []string{}},
		{flaw: deniesRenewal, caught: []string{}},
		{flaw: deniesLease, caught: []string{}},
		{flaw: deniesScope, caught: []string{}},
		{flaw: deniesSafety, caught: []string{}},
		{flaw: hidesItsPause, caught: []string{}},
	}
	for _, test := range tests {
		t.Run(string(test.flaw), func(t *testing.T) {
			t.Parallel()
			compare(t, sees(t, f.subject(test.flaw), false), test.caught, test.may)
		})
	}
}

// TestOutageFlaws close the desk, each in a fair of its own.
func TestOutageFlaws(t *testing.T) {
	t.Parallel()
	for flaw, caught := range map[flaw][]string{sound: nil, blamesAnother: {"outage"}, mumblesOutages: {"outage"}, staysAway: {"outage"}} {
		t.Run(string(flaw), func(t *testing.T) {
			t.Parallel()
			compare(t, sees(t, openFair(t).subject(flaw), true), caught, nil)
		})
	}
}

// compare holds what the checks saw against what they should.
func compare(t *testing.T, seen map[string]error, caught, may []string) {
	t.Helper()
	for name, err := range seen {
		switch {
		case err != nil && !slices.Contains(caught, name) && !slices.Contains(may, name):
			t.Errorf("%s sees a flaw that is not its own: %v", name, err)
		case err == nil && slices.Contains(caught, name):
			t.Errorf("%s does not see the flaw", name)
		}
	}
	for _, name := range slices.Concat(caught, may) {
		if _, ran := seen[name]; !ran {
			t.Errorf("no check %q was run", name)
		}
	}
}

// sees runs every check that applies, of those that are alone or of the others,
// and returns what each of them says.
func sees(t *testing.T, s *lockstest.Subject, alone bool) map[string]error {
	t.Helper()
	seen := map[string]error{}
	for _, c := range lockstest.Checks() {
		if c.Alone == alone && c.Claim(s.Card) != lockstest.Silent {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			seen[c.Name] = c.Run(ctx, s)
			cancel()
		}
	}
	return seen
}

// TestSilent: a card that claims nothing is asked nothing but what any sale must do.
func TestSilent(t *testing.T) {
	var asked []string
	for _, c := range lockstest.Checks() {
		if c.Claim(locks.Card{Scope: locks.ScopeNone}) == lockstest.Yes {
			asked = append(asked, c.Name)
		}
	}
	if want := []string{"refusals"}; !slices.Equal(asked, want) {
		t.Errorf("a card without a claim is asked %v, want %v", asked, want)
	}
}
