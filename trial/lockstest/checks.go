package lockstest

import (
	"context"
	"slices"

	"oversell/api"
)

// Claim is what a card (the description of a strategy) says about the claim of a check.
type Claim int

const (
	// Silent means that the check does not apply to the card.
	Silent Claim = iota
	// Yes means that the card makes the claim of the check.
	Yes
	// No means that the card denies the claim, and the check must observe the opposite.
	No
)

// Check compares one claim of a card with what the strategy does.
type Check struct {
	Name string
	// Says is the claim in words, and Denies is its opposite.
	Says, Denies string
	// Busy means that the check sends so many requests that a lock would be late in the others. It runs last.
	Busy bool

	// basic orders the checks that come first: without them, the others would only wait for a lock that never comes.
	// A release without effect must be found before the checks of exclusion, which would wait for it. 0 means another check.
	basic   int
	applies func(api.Card) bool
	// claims reports whether a card makes the claim. If claims is nil, each card to which the check
	// applies makes the claim.
	claims  func(api.Card) bool
	yes, no func(*trial)
}

// Claim returns what the card says about the check.
func (c Check) Claim(card api.Card) Claim {
	switch {
	case !c.applies(card):
		return Silent
	case c.claims == nil || c.claims(card):
		return Yes
	default:
		return No
	}
}

// Run returns an error if the strategy contradicts its card. It repeats a failed check if a process may have got no CPU for
// a fifth of the lease, each time with a lease twice as long, which a busy machine can keep. After three attempts, the error
// is ErrBusy.
func (c Check) Run(ctx context.Context, cfg *Config) error {
	slower := *cfg
	return unlessStalled(ctx, cfg.Lease/5, func() error {
		err := c.RunOnce(ctx, &slower)
		slower.Lease, slower.Timeout = 2*slower.Lease, 2*slower.Timeout
		return err
	})
}

// RunOnce is Run with only one attempt, for strategies whose check must fail.
func (c Check) RunOnce(ctx context.Context, cfg *Config) error {
	switch c.Claim(cfg.Card) {
	case Yes:
		return cfg.try(ctx, c.yes)
	case No:
		return cfg.try(ctx, c.no)
	default:
		return nil
	}
}

// Checks returns all checks.
func Checks() []Check { return slices.Concat(lockChecks(), leaseChecks(), saleChecks()) }

func lockChecks() []Check {
	return []Check{{
		Name: "keys", Says: "the lock of one key does not block another key",
		applies: sharedLocker, yes: otherKeys, basic: -4,
	}, {
		Name: "names", Says: "the lock of one name does not block another one, however alike they are, or however many",
		applies: sharedLocker, yes: names, Busy: true,
	}, {
		Name: "exclusion", Says: "one holder at a time in one process", Denies: "two requests acquire a new key at the same time",
		applies: locker, claims: excludes, yes: exclusionInside, no: noExclusionInside, basic: -2,
	}, {
		Name: "exclusion-across", Says: "one holder at a time in all processes together", Denies: "each process has a lock of its own",
		applies: excludingLocker, claims: func(c api.Card) bool { return c.Scope == api.ScopeShared },
		yes: exclusionAcross, no: noExclusionAcross, basic: -1,
	}, {
		Name: "time-out", Says: "a waiter gives up when its wait is over, and not before; with a wait of 0 it tries once",
		applies: excludingLocker, yes: timeOut, basic: -5,
	}, {
		Name: "cancellation", Says: "a cancelled waiter returns at once and leaves nothing behind",
		applies: excludingLocker, yes: cancellation,
	}, {
		Name: "clean-up", Says: "an acquisition leaves nothing behind, whenever it is cancelled",
		applies: locker, yes: cleanUp,
	}, {
		Name: "release", Says: "a release works for a cancelled request, frees the lock at once, also for a waiter, and works once",
		applies: excludingLocker, yes: release, basic: -3,
	}, {
		Name: "re-entry", Says: "the owner acquires again without waiting for itself, and the last release frees the lock",
		Denies: "an owner cannot acquire twice", applies: excludingLocker, claims: func(c api.Card) bool { return c.Reentrant },
		yes: reEntry, no: noReEntry,
	}, {
		Name: "fence", Says: "the fence rises with each grant, in all processes", Denies: "grants have no fence",
		applies: locker, claims: func(c api.Card) bool { return c.Fenced }, yes: fence, no: noFence,
	}, {
		Name: "order", Says: "all processes together acquire in order of arrival",
		applies: func(c api.Card) bool { return c.Fair }, yes: inOrder,
	}}
}

func leaseChecks() []Check {
	return []Check{{
		Name: "expiry", Says: "a holder that was paused past its lease finds at once that it has lost the lock",
		Denies: "a grant does not expire", applies: func(c api.Card) bool { return excludingLocker(c) && !c.Unchecked },
		claims: func(c api.Card) bool { return c.Lease }, yes: expiry, no: noExpiry,
	}, {
		Name: "unnoticed-expiry", Says: "a lock expires with its lease, and its holder does not notice",
		applies: func(c api.Card) bool { return c.Unchecked && !c.Renews }, yes: unnoticedExpiry,
	}, {
		Name: "renewal", Says: "the lease is renewed while its holder works, and ends if its process is killed then", Denies: "a lock expires with its first lease",
		applies: func(c api.Card) bool { return leased(c) || c.Renews && c.Unchecked }, claims: func(c api.Card) bool { return c.Renews }, yes: renewal, no: noRenewal,
	}, {
		Name: "lease-length", Says: "leases of 900 and 1,500 ms are not cut",
		applies: func(c api.Card) bool { return c.LeasePerRequest && ends(c) && c.Scope == api.ScopeShared }, yes: leaseLength,
	}, {
		Name: "same-process", Says: "the late release of a lock whose lease has ended does not free the lock of another request in the same process",
		applies: func(c api.Card) bool {
			return ends(c) && c.Scope == api.ScopeShared && !c.BrokenBy(api.ForeignUnlock)
		}, yes: sameProcess,
	}, {
		Name: "no-renewal", Says: "a lock that the request does not want renewed expires with its lease, and a re-entry restarts the lease",
		// The contender must be in another process: in its own, a lost lock keeps its turn until its release.
		applies: func(c api.Card) bool {
			return excludingLocker(c) && c.Lease && c.Renews && c.LeasePerRequest && c.Scope == api.ScopeShared
		}, yes: renewalOff,
	}, {
		Name: "renewal-end", Says: "a release or a loss ends the renewal, so a later holder that dies is not renewed",
		applies: func(c api.Card) bool { return sharedLocker(c) && c.Renews && c.LeasePerRequest }, yes: renewalEnd,
	}, {
		Name: "reuse", Says: "after a lock was lost, ended late, or was not acquired, its process can acquire and keep the same key",
		applies: sharedLocker, yes: reuse,
	}, {
		Name: "loss-notice", Says: "the context of a lost lock ends",
		applies: leased, yes: lossNotice,
	}, {
		Name: "late-receipt", Says: "the receipt of a sale whose lock expired before its write has a warning",
		applies: func(c api.Card) bool { return leased(c) && !admitsOverrun(c) && !c.SilentRelease }, yes: lateReceipt,
	}, {
		Name: "fenced-write", Says: "the fenced write of a holder that was paused past its lease is rejected",
		applies: fenced, yes: fencedWrite,
	}, {
		Name: "amnesia", Says: "fences still rise when the backend has lost its data",
		applies: func(c api.Card) bool { return excludingLocker(c) && c.Fenced }, yes: amnesia,
	}}
}

func saleChecks() []Check {
	return []Check{{
		Name: "storm", Says: "when more is ordered than there is, exactly the stock is sold, and the rest is rejected as sold out",
		applies: excludes, yes: storm, Busy: true,
	}, {
		Name: "refusals", Says: "a sale that is rejected or cancelled takes nothing, reports that, and leaves the lock free",
		applies: func(api.Card) bool { return true }, yes: refusals,
	}}
}

func locker(c api.Card) bool { return c.Locker }

// leased excludes the strategies whose holders do not notice the end of their lease.
func leased(c api.Card) bool { return excludingLocker(c) && c.Lease && !c.Unchecked }

// ends reports whether a check can let the lease of a working holder end.
func ends(c api.Card) bool {
	return excludingLocker(c) && c.Lease && (!c.Renews || c.LeasePerRequest)
}

// admitsOverrun reports whether a waiter may enter beside a holder that renews its lease. So the
// next grant does not show that the holder's lease has ended.
func admitsOverrun(c api.Card) bool { return c.Renews && c.BrokenBy(api.Overrun) }

func fenced(c api.Card) bool { return leased(c) && c.Fenced }

func excludes(c api.Card) bool { return c.Scope != api.ScopeNone }

func excludingLocker(c api.Card) bool { return c.Locker && excludes(c) }

func sharedLocker(c api.Card) bool { return c.Locker && c.Scope == api.ScopeShared }
