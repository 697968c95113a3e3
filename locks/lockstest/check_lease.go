package lockstest

import (
	"context"
	"fmt"
	"time"

	"oversell/api"
	"oversell/locks"
)

func expiry(t *trial) {
	others, key := t.participants(2, t.Workers.Lease), t.newKey()
	paused := t.alone()
	defer paused.worker.Kill()
	h := paused.acquire("acquire", t.short(key, "paused-holder"))
	must("pause the holder", paused.worker.Pause())
	successor := others[0].acquire("acquire after the lease of a paused holder", t.long(key, "successor", t.Lease+t.Timeout))
	must("resume the holder", paused.worker.Resume())
	mustBe("verify the lost lock, at once", h.verify(), locks.ErrLost)
	mustBe("the cause with which the context of the lost lock ends", h.lost(t.Timeout), locks.ErrLost)
	if t.Card.BrokenBy(api.ForeignUnlock) || admitsOverrun(t.Card) {
		return // this release may free the successor's lock, or the holder may still have its lock
	}
	mustBe("release the lost lock", h.release(), locks.ErrNotHeld)
	others[1].mustNotAcquire("after the release of the lost lock", key, "contender")
	must("verify the successor's lock", successor.verify())
	successor.mustRelease()
}

func unnoticedExpiry(t *trial) {
	mine, other, key := t.shortPair()
	h := mine.acquire("acquire", t.short(key, "holder"))
	next := other.acquire("acquire after the lease of a holder that still works", t.long(key, "next", t.Lease+t.Timeout))
	must("verify the lock whose lease has ended", h.verify())
	must("verify the next holder's lock", next.verify())
	next.mustRelease()
	mustBe("release the lock whose lease has ended", h.release(), locks.ErrNotHeld)
}

func noExpiry(t *trial) {
	mine, other, key := t.shortPair()
	r := t.short(key, "holder")
	r.Lease = t.Lease // a strategy without leases must ignore this lease
	h := mine.acquire("acquire", r)
	t.mustStayHeld(h, other, key, 2*t.Lease)
	h.mustRelease()
}

func renewal(t *trial) {
	mine, other, key := t.shortPair()
	h := mine.acquire("acquire", t.short(key, "holder"))
	t.mustStayHeld(h, other, key, 3*t.Lease+t.Lease/3)
	h.mustRelease()
	other.mustFindFreeNow(key, "contender")
}

func (t *trial) mustStayHeld(h heldLock, other participant, key string, period time.Duration) {
	interval := time.NewTicker(t.Lease / 4)
	defer interval.Stop()
	for began := time.Now(); time.Since(began) < period; {
		select {
		case <-interval.C:
		case <-t.ctx.Done():
			must("hold the lock", context.Cause(t.ctx))
		}
		when := fmt.Sprintf("%v after the grant", time.Since(began).Round(time.Millisecond))
		must("verify the lock "+when, h.verify())
		other.mustNotAcquire(when, key, "contender")
	}
	must("verify the lock at the end", h.verify())
}

func noRenewal(t *trial) {
	mine, other, key := t.shortPair()
	h := mine.acquire("acquire", t.short(key, "holder"))
	mustBe("the lock, after its lease", h.lost(t.Lease+t.Timeout), locks.ErrLost)
	other.mustFindFree(key, "contender")
}

func renewalOff(t *trial) {
	mine, other, key := t.shortPair()
	r := t.short(key, "holder")
	r.NoRenew = true
	h := mine.acquire("acquire", r)
	if t.Card.Reentrant {
		must("hold the lock for half of its lease", locks.Work(t.ctx, t.Lease/2))
		again := mine.acquire("acquire again", r)
		must("hold the lock past the end of its first lease", locks.Work(t.ctx, t.Lease*3/4))
		other.mustNotAcquire("in the lease that the re-entry restarted", key, "contender")
		again.mustRelease()
	}
	mustBe("the lock, after its lease", h.lost(t.Lease+t.Timeout), locks.ErrLost)
	other.mustFindFree(key, "contender")
}

func lossNotice(t *trial) {
	mine, other, key := t.shortPair()
	h := mine.acquire("acquire", t.short(key, "holder"))
	must("verify the lock before its loss", h.verify())
	other.clear(key)
	mustBe("the cause with which the context of the lost lock ends", h.lost(t.Lease+t.Timeout), locks.ErrLost)
	mustBe("release the lost lock", h.release(), locks.ErrNotHeld)
	other.mustFindFree(key, "next")
}

// renewalEnd kills the holder that follows a released lock. If the renewal of the released lock goes
// on, and does not compare the owner, it renews the lock of the dead holder for ever.
func renewalEnd(t *trial) {
	mine, other, key := t.shortPair()
	mine.acquire("acquire", t.short(key, "first")).mustRelease()
	killed := t.alone()
	killed.acquire("acquire after the release", t.short(key, "killed"))
	killed.worker.Kill()
	other.acquire("acquire after the lease of a killed holder", t.long(key, "next", t.Lease+t.Timeout)).mustRelease()
}
