package lockstest

import (
	"context"

	"oversell/api"
)

// Claim is what a card says about a check.
type Claim int

// The claims. A card that says nothing is not asked.
const (
	Silent Claim = iota // the check does not apply
	Yes                 // the card claims it
	No                  // the card says no, and the opposite must be seen
)

// Check compares one claim with what can be seen.
type Check struct {
	Name string
	// Says is the claim in words, Denies the opposite.
	Says, Denies string
	// Alone: it takes backends away, and disturbs whatever runs beside it.
	Alone bool
	// Claim reads the card.
	Claim func(api.Card) Claim

	yes, no func(context.Context, *Subject) error
}

// Run returns an error unless what the card claims was seen. A nil error where
// the card is silent says nothing. A check that fails while the machine stands still
// for a fifth of the subject's lease is run again, up to three times in all.
func (c Check) Run(ctx context.Context, s *Subject) error {
	return unlessStalled(ctx, s.Lease/5, func() error { return c.RunOnce(ctx, s) })
}

// RunOnce is Run without a second attempt, for a subject that must fail.
func (c Check) RunOnce(ctx context.Context, s *Subject) error {
	switch c.Claim(s.Card) {
	case Yes:
		return c.yes(ctx, s)
	case No:
		return c.no(ctx, s)
	default:
		return nil
	}
}

// claimed is the claim in words.
func (c Check) claimed(card api.Card) string {
	if c.Claim(card) == No {
		return c.Denies
	}
	return c.Says
}

// Checks are all of them, in the order in which a reader would ask.
func Checks() []Check {
	all := append(lockChecks(), leaseChecks()...)
	all = append(all, saleChecks()...)
	return append(all, Check{
		Name: "polling", Alone: true,
		Says: "waiters wait to be told, and ask nothing meanwhile", Denies: "waiters ask again and again",
		Claim: claimIf(func(c api.Card) bool { return c.Locker && c.Scope == api.ScopeShared },
			func(c api.Card) bool { return !breaks(c, api.Polling) }), yes: quiet, no: polls,
	}, Check{
		Name: "outage", Alone: true,
		Says: "a backend that is gone is named in an error at once, and used again when it is back",
		// Stock that goes with its backend does not come back with it: that is Failover.
		Claim: claimIf(func(c api.Card) bool { return len(c.Backends) > 0 && (c.Locker || !breaks(c, api.Failover)) }, every), yes: outage,
	})
}

func lockChecks() []Check {
	return []Check{
		{
			Name: "exclusion", Says: "one holder at a time, in one process",
			Claim: claimIf(func(c api.Card) bool { return c.Locker && ordered(c) }, every), yes: exclusionInside,
		},
		{
			Name: "exclusion-across", Says: "one holder at a time, in all processes together",
			Denies: "one holder in each process, however many processes", yes: exclusionAcross, no: noExclusionAcross,
			Claim: claimIf(func(c api.Card) bool { return c.Locker && ordered(c) },
				func(c api.Card) bool { return c.Scope == api.ScopeShared }),
		},
		{
			Name: "time-out", Says: "a waiter gives up when its wait is over, not before; a wait of 0 is one try",
			Claim: claimIf(locker, every), yes: timeOut,
		},
		{
			Name: "cancellation", Says: "a waiter whose caller goes away ends at once and leaves nothing behind",
			Claim: claimIf(locker, every), yes: cancellation,
		},
		{
			Name: "clean-up", Says: "an acquisition cut off at any moment leaves nothing behind",
			Claim: claimIf(locker, every), yes: cleanUp,
		},
		{
			Name: "release", Says: "a release works for a caller that is gone, frees the lock at once, and works once",
			Claim: claimIf(locker, every), yes: release,
		},
		{
			Name: "re-entry", Says: "the same owner acquires again without waiting for itself; the last release frees the lock",
			Denies: "the same owner can't acquire twice", yes: reEntry, no: noReEntry,
			Claim: claimIf(locker, func(c api.Card) bool { return c.Reentrant }),
		},
		{
			Name: "fence", Says: "fences rise with every grant, whichever process it goes to",
			Denies: "grants carry no fence", yes: fence, no: noFence,
			Claim: claimIf(locker, func(c api.Card) bool { return c.Fenced }),
		},
	}
}

func leaseChecks() []Check {
	leased := func(c api.Card) bool { return c.Locker && c.Lease }
	return []Check{
		{
			Name: "expiry", Says: "a holder that sleeps past its lease has lost the lock, and knows it when it wakes up",
			Denies: "a grant does not end by itself", yes: expiry, no: noExpiry,
			Claim: claimIf(locker, func(c api.Card) bool { return c.Lease }),
		},
		{
			Name: "order", Says: "grants go in the order of arrival, over all processes",
			Claim: claimIf(func(c api.Card) bool { return c.Fair }, every), yes: inOrder,
		},
		{
			Name: "crash", Says: "a dead holder or waiter blocks nobody for longer than its lease",
			Claim: claimIf(leased, every), yes: crash,
		},
		{
			Name: "renewal", Says: "a living holder keeps the lock for as long as it works",
			Denies: "a hold is over when its lease is", yes: renewal, no: noRenewal,
			Claim: claimIf(leased, func(c api.Card) bool { return c.Renews }),
		},
		{
			Name: "loss-notice", Says: "a holder that has lost the lock is told",
			Claim: claimIf(leased, every), yes: lossNotice,
		},
		{
			Name: "late-receipt", Says: "the receipt of a sale whose lock expired before its write warns of that",
			Claim: claimIf(leased, every), yes: lateReceipt,
		},
		{
			Name: "fenced-write", Says: "a fenced write of a holder that was paused past its lease is refused",
			Claim: claimIf(func(c api.Card) bool { return leased(c) && c.Fenced }, every), yes: fencedWrite,
		},
		{
			Name: "amnesia", Says: "fenced sales go on, with rising fences, when the backend has forgotten everything",
			Claim: claimIf(func(c api.Card) bool { return leased(c) && c.Fenced }, every), yes: amnesia,
		},
	}
}

func saleChecks() []Check {
	return []Check{
		{
			Name: "step-race", Says: "a sale that begins while another one stands between its read and its write loses no update, across processes",
			Denies: "it loses one", yes: stepRaceAcross, no: stepRaceAcrossLoses,
			Claim: claimIf(commitsFirst, func(c api.Card) bool { return c.Safe }),
		},
		{
			Name: "step-race-inside", Says: "the same in one process",
			Denies: "it loses one in one process", yes: stepRaceInside, no: stepRaceInsideLoses,
			Claim: claimIf(commitsFirst, ordered),
		},
		{
			Name: "storm", Says: "when more is asked than there is, exactly the stock is sold and the rest are told",
			Claim: claimIf(ordered, every),
			yes:   stormSells,
		},
		{
			Name: "refusals", Says: "a sale that is refused or given up takes nothing, says so, and leaves the lock free",
			Claim: claimIf(every, every), yes: refusals,
		},
	}
}

// every card is meant.
func every(api.Card) bool { return true }

func locker(c api.Card) bool { return c.Locker }

// ordered: it keeps some order, be it in one process only.
func ordered(c api.Card) bool { return c.Scope != api.ScopeNone }

// commitsFirst: its race is between read and write. early-release has the other.
func commitsFirst(c api.Card) bool { return !breaks(c, api.EarlyRelease) }

// claimIf is silent where the check does not apply, and else as claimed says.
func claimIf(applies, claimed func(api.Card) bool) func(api.Card) Claim {
	return func(c api.Card) Claim {
		switch {
		case !applies(c):
			return Silent
		case claimed(c):
			return Yes
		default:
			return No
		}
	}
}

func breaks(c api.Card, h api.Hazard) bool {
	for _, b := range c.Breaks {
		if b.Hazard == h {
			return true
		}
	}
	return false
}
