package lockstest_test

import "oversell/api"

// flaw is one way in which a locker can break its card's word, and the id under
// which a worker opens it.
type flaw string

const (
	sound flaw = "sound"

	// Flaws of the lock.
	letsEverybodyIn      flaw = "lets-everybody-in"
	onlyNextDoor         flaw = "only-next-door" // a lock in one process that claims to be shared
	hurries              flaw = "hurries"
	haunts               flaw = "haunts" // a cancelled waiter goes on in the background
	hidesTheCause        flaw = "hides-the-cause"
	forgetsItsGrant      flaw = "forgets-its-grant" // that came when the caller had just gone
	releasesForTheLiving flaw = "releases-for-the-living"
	holdsTwice           flaw = "holds-twice" // a second release is nil, for the first did nothing
	freesStrangers       flaw = "frees-strangers"
	neverExpires         flaw = "never-expires"
	keepsDeadWaiters     flaw = "keeps-dead-waiters" // in a queue that nobody tidies
	neverRenews          flaw = "never-renews"
	keepsTheLossQuiet    flaw = "keeps-the-loss-quiet"
	fenceStandsStill     flaw = "fence-stands-still"
	forgetsItsFences     flaw = "forgets-its-fences"
	waitsForItself       flaw = "waits-for-itself"
	blamesAnother        flaw = "blames-another"
	mumblesOutages       flaw = "mumbles-outages"
	staysAway            flaw = "stays-away" // when the desk is back

	// Flaws of the sale.
	readsEarly         flaw = "reads-early"
	releasesEarly      flaw = "releases-early"
	writesWithoutFence flaw = "writes-without-fence"
	keepsQuietAfterAll flaw = "keeps-quiet-after-all" // that the lock was lost before its release
	sellsAir           flaw = "sells-air"
	forgetsToRelease   flaw = "forgets-to-release"

	// A sound lock whose card is wrong.
	deniesReEntry flaw = "denies-re-entry"
	deniesFence   flaw = "denies-fence"
	deniesRenewal flaw = "denies-renewal"
	deniesLease   flaw = "denies-lease"
	deniesScope   flaw = "denies-scope"
	deniesSafety  flaw = "denies-safety"
	hidesItsPolls flaw = "hides-its-polls"
	// One that confesses what it does not do.
	confessesPolls flaw = "confesses-polls"
	// One that boasts of an order which it does not keep: its first waiter dozes.
	boastsOfOrder flaw = "boasts-of-order"
)

func cardOf(f flaw) api.Card {
	c := api.Card{
		ID: string(f), Family: "desk", Scope: api.ScopeShared, Safe: true, Backends: []string{"desk"}, Locker: true,
		Lease: true, LeasePerRequest: true, Renews: true, Reentrant: true, Fenced: true,
		Breaks: []api.Break{{Hazard: api.Pause}, {Hazard: api.Polling}},
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
	case deniesScope:
		c.Scope = api.ScopeProcess
	case deniesSafety:
		c.Safe = false
	case hidesItsPolls:
		c.Breaks = c.Breaks[:1]
	case boastsOfOrder:
		c.Fair = true
	}
	return c
}
