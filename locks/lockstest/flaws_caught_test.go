package lockstest_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"oversell/api"
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
		only        []string // for a flaw with which the other checks take minutes
	}{
		{flaw: letsEverybodyIn, caught: []string{
			"exclusion-across", "time-out", "cancellation", "release", "re-entry", "expiry", "renewal", "step-race",
		}, may: []string{"clean-up", "crash", "storm"}},
		{flaw: onlyNextDoor, caught: []string{
			"exclusion-across", "time-out", "cancellation", "release", "re-entry", "fence", "expiry", "renewal",
			"loss-notice", "late-receipt", "fenced-write", "amnesia", "step-race",
		}, may: []string{"storm"}},
		{flaw: hurries, caught: []string{"time-out"}},
		{flaw: haunts, caught: []string{"cancellation", "clean-up"}},
		{flaw: hidesTheCause, caught: []string{"cancellation", "clean-up"}},
		{flaw: forgetsItsGrant, caught: []string{"clean-up"}},
		{flaw: releasesForTheLiving, caught: []string{"release", "refusals"}, may: []string{"clean-up"}},
		{flaw: holdsTwice, caught: []string{"release", "re-entry"}, only: []string{"release", "re-entry", "step-race"}},
		{flaw: freesStrangers, caught: []string{"expiry"}},
		{flaw: neverExpires, caught: []string{"expiry", "crash", "loss-notice", "late-receipt", "fenced-write"}},
		{flaw: keepsDeadWaiters, caught: []string{"crash"}},
		{flaw: neverRenews, caught: []string{"renewal"}},
		{flaw: keepsTheLossQuiet, caught: []string{"loss-notice"}, may: []string{"expiry"}},
		{flaw: fenceStandsStill, caught: []string{"fence", "fenced-write", "amnesia"}},
		{flaw: forgetsItsFences, caught: []string{"amnesia"}},
		{flaw: waitsForItself, caught: []string{"re-entry"}},
		{flaw: readsEarly, caught: []string{"storm"}},
		{flaw: releasesEarly, caught: []string{"step-race", "step-race-inside", "refusals"}, may: []string{"storm"}},
		{flaw: writesWithoutFence, caught: []string{"fenced-write"}},
		{flaw: keepsQuietAfterAll, caught: []string{"late-receipt"}},
		{flaw: sellsAir, caught: []string{"storm", "refusals"}},
		{flaw: forgetsToRelease, caught: []string{"amnesia", "refusals"}, only: []string{"amnesia", "refusals", "release"}},
		{flaw: deniesReEntry, caught: []string{"re-entry"}},
		{flaw: deniesFence, caught: []string{"fence"}},
		{flaw: deniesRenewal, caught: []string{"renewal"}},
		{flaw: deniesLease, caught: []string{"expiry"}},
		{flaw: deniesScope, caught: []string{"exclusion-across"}},
		{flaw: deniesSafety, caught: []string{"step-race"}},
		{flaw: boastsOfOrder, caught: []string{"order"}, only: []string{"order"}},
	}
	for _, test := range tests {
		t.Run(string(test.flaw), func(t *testing.T) {
			t.Parallel()
			compare(t, sees(t, f.subject(test.flaw), test.caught, test.only...), test.caught, test.may)
		})
	}
}

// TestOutageFlaws close the desk, each in a fair of its own.
func TestOutageFlaws(t *testing.T) {
	t.Parallel()
	for flaw, caught := range map[flaw][]string{sound: nil, blamesAnother: {"outage"}, mumblesOutages: {"outage"}, staysAway: {"outage"}} {
		t.Run(string(flaw), func(t *testing.T) {
			t.Parallel()
			compare(t, sees(t, openFair(t).subject(flaw), caught, "outage"), caught, nil)
		})
	}
}

// TestPollingFlaws count the questions to a desk of their own.
func TestPollingFlaws(t *testing.T) {
	t.Parallel()
	for flaw, caught := range map[flaw][]string{sound: nil, hidesItsPolls: {"polling"}, confessesPolls: {"polling"}} {
		t.Run(string(flaw), func(t *testing.T) {
			t.Parallel()
			compare(t, sees(t, openFair(t).subject(flaw), caught, "polling"), caught, nil)
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

// sees runs the named checks, else all that may run beside others, and returns
// what each of them says. On a machine that stands still now and then, a check that must
// catch the flaw has three attempts to do so.
func sees(t *testing.T, s *lockstest.Subject, caught []string, names ...string) map[string]error {
	t.Helper()
	seen := map[string]error{}
	for _, c := range lockstest.Checks() {
		wanted := slices.Contains(names, c.Name) || len(names) == 0 && !c.Alone
		if wanted && c.Claim(s.Card) != lockstest.Silent {
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
			run := c.Run
			if slices.Contains(caught, c.Name) {
				run = c.RunOnce
			}
			seen[c.Name] = run(ctx, s)
			for attempt := 1; slices.Contains(caught, c.Name) && seen[c.Name] == nil && attempt < 3; attempt++ {
				seen[c.Name] = c.RunOnce(ctx, s)
			}
			cancel()
		}
	}
	return seen
}

// TestSilent: a card that claims nothing is asked nothing but what any sale must do.
func TestSilent(t *testing.T) {
	var asked []string
	for _, c := range lockstest.Checks() {
		if c.Claim(api.Card{Scope: api.ScopeNone}) == lockstest.Yes {
			asked = append(asked, c.Name)
		}
	}
	if want := []string{"refusals"}; !slices.Equal(asked, want) {
		t.Errorf("a card without a claim is asked %v, want %v", asked, want)
	}
}
