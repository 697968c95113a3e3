package lockstest_test

import "oversell/api"

// flaw is the ID of a test strategy. It names the only way in which the strategy breaks the
// contract or contradicts its card.
type flaw string

const (
	sound flaw = "sound"

	// Flaws of the lock.
	excludesNothing     flaw = "excludes-nothing"
	letsAllIn           flaw = "lets-all-in"       // also the requests of one process
	onlyThisProcess     flaw = "only-this-process" // works in one process, although its card says shared
	shortWait           flaw = "short-wait"
	zombieWaiter        flaw = "zombie-waiter" // a cancelled waiter continues in the background
	hidesTheCause       flaw = "hides-the-cause"
	keepsCancelledGrant flaw = "keeps-cancelled-grant" // a request that is cancelled late keeps the lock
	cancelledRelease    flaw = "cancelled-release"     // a cancelled request does not release
	firstReleaseFails   flaw = "first-release-fails"   // the first release does nothing, so the second returns nil
	releasesForeignLock flaw = "releases-foreign-lock"
	releasesOwnNext     flaw = "releases-own-next" // frees the lock of the next request in the same process
	neverExpires        flaw = "never-expires"
	neverRenews         flaw = "never-renews"
	renewsAnyway        flaw = "renews-anyway"
	hidesTheLoss        flaw = "hides-the-loss"
	growsLease          flaw = "grows-lease"    // each renewal adds a lease to the rest
	keepsWatchdog       flaw = "keeps-watchdog" // after a failed renewal, its key is never renewed again in the process
	sameTokens          flaw = "same-tokens"    // in each process: tokens are numbers counted from 1
	cutsLease           flaw = "cuts-lease"     // to whole seconds
	confusesNames       flaw = "confuses-names" // ignores the case of keys
	oneKey              flaw = "one-key"        // has one lock for all keys
	constantFence       flaw = "constant-fence"
	losesFences         flaw = "loses-fences"
	waitsForItself      flaw = "waits-for-itself"

	// Flaws of the sale.
	readsEarly         flaw = "reads-early"
	releasesEarly      flaw = "releases-early"
	writesWithoutFence flaw = "writes-without-fence"
	warnsOfNothing     flaw = "warns-of-nothing" // no warning of a lost lock
	oversells          flaw = "oversells"
	forgetsToRelease   flaw = "forgets-to-release"

	// The lock is sound, but its card is wrong.
	deniesReEntry flaw = "denies-re-entry"
	deniesFence   flaw = "denies-fence"
	deniesRenewal flaw = "denies-renewal"
	deniesLease   flaw = "denies-lease"
	deniesNotice  flaw = "denies-notice"
	deniesScope   flaw = "denies-scope"
	claimsOrder   flaw = "claims-order" // the first waiter sleeps too long
)

func cardOf(f flaw) api.Card {
	c := api.Card{
		ID: string(f), Family: "memory", Scope: api.ScopeShared, Backends: []string{"server"}, Locker: true,
		Lease: true, LeasePerRequest: true, Renews: true, Reentrant: true, Fenced: true,
	}
	switch f {
	case deniesReEntry:
		c.Reentrant = false
	case deniesFence:
		c.Fenced = false
	case deniesRenewal:
		c.Renews = false
	case deniesLease:
		c.Lease = false
	case deniesNotice:
		c.Renews, c.Unchecked = false, true
	case deniesScope:
		c.Scope = api.ScopeProcess
	case claimsOrder:
		c.Fair = true
	}
	return c
}
