package lockstest_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"oversell/api"
	"oversell/trial/lockstest"
)

// TestFlaws runs the checks on strategies with one flaw each. The checks in caught must find the
// flaw, those in may can find it by chance, and all others must pass.
func TestFlaws(t *testing.T) {
	t.Parallel()
	bed := newTestbed(t)
	tests := []struct {
		flaw        flaw
		caught, may []string
		only        []string // the only checks to run, if other checks take minutes with the flaw
	}{
		{flaw: excludesNothing, caught: []string{
			"exclusion-across", "time-out", "cancellation", "release", "re-entry", "fence", "expiry", "renewal", "no-renewal", "names", "lease-length", "reuse",
		}, may: []string{"clean-up", "storm"}},
		{flaw: letsAllIn, caught: []string{"exclusion"}, only: []string{"exclusion"}},
		{flaw: onlyThisProcess, caught: []string{
			"exclusion-across", "time-out", "cancellation", "release", "re-entry", "fence", "expiry", "renewal", "no-renewal",
			"loss-notice", "late-receipt", "fenced-write", "amnesia", "names", "lease-length", "reuse",
		}, may: []string{"storm"}},
		{flaw: shortWait, caught: []string{"time-out"}},
		{flaw: zombieWaiter, caught: []string{"cancellation", "clean-up"}, may: []string{"reuse"}}, // if the background gets the lock first
		{flaw: hidesTheCause, caught: []string{"cancellation", "clean-up"}},
		{flaw: keepsCancelledGrant, caught: []string{"clean-up"}},
		{flaw: cancelledRelease, caught: []string{"release", "refusals"}, may: []string{"clean-up"}},
		{flaw: firstReleaseFails, caught: []string{"release", "re-entry"}, only: []string{"release", "re-entry"}},
		{flaw: releasesForeignLock, caught: []string{"expiry"}},
		{flaw: releasesOwnNext, caught: []string{"same-process"}, only: []string{"same-process"}},
		{flaw: neverExpires, caught: []string{"expiry", "no-renewal", "renewal", "renewal-end", "reuse", "loss-notice", "late-receipt", "fenced-write", "lease-length"}},
		{flaw: growsLease, caught: []string{"renewal"}},
		{flaw: keepsWatchdog, caught: []string{"reuse"}},
		{flaw: sameTokens, caught: []string{"expiry"}},
		{flaw: neverRenews, caught: []string{"renewal", "no-renewal", "reuse"}},
		{flaw: renewsAnyway, caught: []string{"no-renewal", "lease-length", "reuse"}},
		{flaw: cutsLease, caught: []string{"lease-length"}, may: []string{"no-renewal"}},
		{flaw: confusesNames, caught: []string{"names"}},
		{flaw: oneKey, caught: []string{"keys"}, only: []string{"keys"}},
		{flaw: hidesTheLoss, caught: []string{"loss-notice"}, may: []string{"expiry"}},
		{flaw: constantFence, caught: []string{"fence", "fenced-write", "amnesia"}},
		{flaw: losesFences, caught: []string{"amnesia"}},
		{flaw: waitsForItself, caught: []string{"re-entry", "no-renewal"}},
		{flaw: readsEarly, caught: []string{"storm"}},
		{flaw: releasesEarly, caught: []string{"refusals"}, may: []string{"storm"}},
		{flaw: writesWithoutFence, caught: []string{"fenced-write"}},
		{flaw: warnsOfNothing, caught: []string{"late-receipt"}},
		{flaw: oversells, caught: []string{"storm", "refusals"}},
		{flaw: forgetsToRelease, caught: []string{"amnesia", "refusals"}, only: []string{"amnesia", "refusals", "release"}},
		{flaw: deniesReEntry, caught: []string{"re-entry"}},
		{flaw: deniesFence, caught: []string{"fence"}},
		{flaw: deniesRenewal, caught: []string{"renewal", "lease-length", "reuse"}, may: []string{"same-process"}},
		{flaw: deniesLease, caught: []string{"expiry", "reuse"}},
		{flaw: deniesNotice, caught: []string{"unnoticed-expiry"}},
		{flaw: deniesScope, caught: []string{"exclusion-across"}},
		{flaw: claimsOrder, caught: []string{"order"}, only: []string{"order"}},
	}
	var found []string
	for _, test := range tests {
		found = append(found, test.caught...)
	}
	for _, c := range lockstest.Checks() {
		if !slices.Contains(found, c.Name) {
			t.Errorf("no flaw shows that the check %q can fail", c.Name)
		}
	}
	for _, test := range tests {
		t.Run(string(test.flaw), func(t *testing.T) {
			t.Parallel()
			compare(t, results(t, bed.config(test.flaw), test.caught, test.only...), test.caught, test.may)
		})
	}
}

// compare reports each check that found a flaw by mistake, and each check that missed the flaw.
func compare(t *testing.T, found map[string]error, caught, may []string) {
	t.Helper()
	for name, err := range found {
		switch {
		case errors.Is(err, lockstest.ErrBusy):
			t.Logf("%s: %v", name, err)
		case err != nil && !slices.Contains(caught, name) && !slices.Contains(may, name):
			t.Errorf("%s finds a flaw that it should not: %v", name, err)
		case err == nil && slices.Contains(caught, name):
			t.Errorf("%s does not find the flaw", name)
		}
	}
	for _, name := range slices.Concat(caught, may) {
		if _, ran := found[name]; !ran {
			t.Errorf("no check %q was run", name)
		}
	}
}

// results returns the error of each named check, or of all checks. A check in caught runs up to three
// times until it finds the flaw, because an overloaded machine may hide the flaw.
func results(t *testing.T, cfg *lockstest.Config, caught []string, names ...string) map[string]error {
	t.Helper()
	found := map[string]error{}
	for _, c := range lockstest.Checks() {
		wanted := slices.Contains(names, c.Name) || len(names) == 0
		if wanted && c.Claim(cfg.Card) != lockstest.Silent {
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
			run := c.Run
			if slices.Contains(caught, c.Name) {
				run = c.RunOnce
			}
			found[c.Name] = run(ctx, cfg)
			for attempt := 1; slices.Contains(caught, c.Name) && found[c.Name] == nil && attempt < 3; attempt++ {
				found[c.Name] = c.RunOnce(ctx, cfg)
			}
			cancel()
		}
	}
	return found
}

// TestSilent checks that only the check "refusals" applies to a card without claims.
func TestSilent(t *testing.T) {
	var applied []string
	for _, c := range lockstest.Checks() {
		if c.Claim(api.Card{Scope: api.ScopeNone}) == lockstest.Yes {
			applied = append(applied, c.Name)
		}
	}
	if want := []string{"refusals"}; !slices.Equal(applied, want) {
		t.Errorf("the checks %v apply to a card without claims, want %v", applied, want)
	}
}
