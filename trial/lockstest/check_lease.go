package lockstest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"oversell/api"
	"oversell/locks"
)

// longLook is how long the lock of an adapter is watched: it may have a lease of ten seconds that its hello denies,
// or end its renewals after some twenty of them.
const longLook = 22 * time.Second

func expiry(t *trial) {
	other, key := t.participant(1, t.Workers.Lease), t.newKey()
	// Two new processes, which may count their tokens from the same number.
	paused, next := t.alone(), t.alone()
	defer paused.worker.Kill()
	defer next.worker.Kill()
	h := paused.acquire("acquire", t.short(key, "paused-holder"))
	must("pause the holder", paused.worker.Pause())
	successor := next.acquire("acquire after the lease of a paused holder", t.long(key, "successor", t.Lease+t.Timeout))
	must("resume the holder", paused.worker.Resume())
	mustBe("verify the lost lock, at once", h.verify(), locks.ErrLost)
	mustBe("the cause with which the context of the lost lock ends", h.lost(t.Timeout), locks.ErrLost)
	if t.Card.BrokenBy(api.ForeignUnlock) || admitsOverrun(t.Card) {
		return // this release may free the successor's lock, or the holder may still have its lock
	}
	t.mustBeRefused("release the lost lock", h.release())
	other.mustNotAcquire("after the release of the lost lock", key, "contender")
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
	t.mustBeRefused("release the lock whose lease has ended", h.release())
}

func noExpiry(t *trial) {
	mine, other, key := t.shortPair()
	r := t.short(key, "holder")
	r.Lease = t.Lease // a strategy without leases must ignore this lease
	h := mine.acquire("acquire", r)
	t.mustStayHeld(other, t.look(2*t.Lease), h)
	h.mustRelease()
}

// renewal kills a second holder, after many renewals. A renewal may give a lease in another unit, or add one to the rest.
func renewal(t *trial) {
	mine, other, key := t.shortPair()
	h, killed := mine.acquire("acquire", t.short(key, "holder")), t.alone()
	defer killed.worker.Kill()
	killed.mustFindFree(t.newKey(), "first") // the first request of a program may be slow, and its lease short then
	dead := killed.acquire("acquire another key", t.short(t.newKey(), "killed"))
	t.mustStayHeld(other, t.look(3*t.Lease+t.Lease/3), h, dead)
	h.mustRelease()
	other.mustFindFreeNow(key, "contender")
	killed.worker.Kill()
	if !t.Card.BrokenBy(api.Crash) {
		other.acquire("acquire after the lease of a holder that had renewed it, and was killed", t.long(dead.key, "next", t.Lease+t.Timeout)).mustRelease()
	}
}

// leaseLength counts from before the request, when no lease can have begun. So a grant to another request before
// the end of this time came too early, on any machine.
func leaseLength(t *trial) {
	mine, other, _ := t.pair()
	for _, lease := range []time.Duration{900 * time.Millisecond, 1500 * time.Millisecond} {
		r := t.short(t.newKey(), "holder")
		r.Lease, r.NoRenew = lease, t.Card.Renews
		began := time.Now()
		h := mine.acquire(fmt.Sprintf("acquire with a lease of %v", lease), r)
		next := other.acquire("acquire after this lease", t.long(r.Key, "next", lease+t.Timeout))
		if took := time.Since(began); took < lease {
			wrong("a lease of %v ended within %v", lease, took.Round(time.Millisecond))
		}
		next.mustRelease()
		_ = h.release()
	}
	for range 4 {
		t.takeOver(900 * time.Millisecond)
	}
}

// takeOver lets many requests wait for the end of one lease: at most one of them acquires the lock. A lock that looks
// for an expired entry, and then deletes it in a second step, deletes the one of the first who took it over.
func (t *trial) takeOver(lease time.Duration) {
	all, r := t.participants(3, t.Workers.Lease), t.short(t.newKey(), "holder")
	r.Lease, r.NoRenew = lease, t.Card.Renews
	h := all[0].acquire("acquire", r)
	waiters := make([]*call, 24)
	for i := range waiters {
		waiters[i] = all[i%3].begin(t.long(r.Key, fmt.Sprintf("waiter-%d", i), 2*lease))
	}
	granted := 0
	for i, c := range waiters {
		if all[i%3].await(c).err() == nil {
			granted++
			defer func() { _ = heldLock{participant: all[i%3], call: c}.release() }()
		}
	}
	if granted > 1 {
		wrong("%d of the requests that waited for the end of one lease hold the lock", granted)
	}
	_ = h.release()
}

// sameProcess lets a lease end with both requests in one process, which may have one token for all its requests. A
// lock may keep the second request out until the first has released its lock.
func sameProcess(t *trial) {
	mine, other, key := t.shortPair()
	r := t.short(key, "late")
	r.NoRenew = t.Card.Renews
	late := mine.acquire("acquire", r)
	next, err := mine.tryAcquire(t.long(key, "next", 3*t.Lease+time.Duration(t.Card.PollMS)*time.Millisecond))
	if errors.Is(err, locks.ErrNotAcquired) {
		_ = late.release()
		return
	}
	must("acquire in the same process, after the lease", err)
	if err := late.verify(); err == nil && !t.Card.Unchecked {
		wrong("two requests of one process hold the lock, after the lease of the first")
	}
	_ = late.release()
	other.mustNotAcquire("after the late release of the first request", key, "contender")
	next.mustRelease()
	other.mustFindFreeNow(key, "last")
}

// look returns how long a lock is watched.
func (t *trial) look(period time.Duration) time.Duration {
	if t.Card.Family == "adapter" {
		return longLook
	}
	return period
}

func (t *trial) mustStayHeld(other participant, period time.Duration, held ...heldLock) {
	interval := time.Tick(t.Lease / 4)
	for began := time.Now(); time.Since(began) < period; {
		select {
		case <-interval:
		case <-t.ctx.Done():
			must("hold the lock", context.Cause(t.ctx))
		}
		for _, h := range held {
			when := fmt.Sprintf("%s; %v later", h.what, time.Since(began).Round(time.Millisecond))
			_, err := other.tryAcquire(t.long(h.key, "contender", 0))
			must(when+", verify the lock", h.verify()) // first: a stall may have ended the lease, and so let the contender in
			mustBe(when+": a try of contender for the held key", err, locks.ErrNotAcquired)
		}
	}
	for _, h := range held {
		must(h.what+"; verify the lock at the end", h.verify())
	}
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
	asked := time.Now()
	h := mine.acquire("acquire", r)
	if t.Card.Reentrant {
		must("hold the lock for half of its lease", locks.Work(t.ctx, t.Lease/2))
		again, err := mine.tryAcquire(r)
		if errors.Is(err, locks.ErrNotAcquired) && time.Since(asked) > t.Lease*3/4 {
			_ = h.release()
			renewalOff(t) // the machine was so busy that the holder could not trust its lease any more
			return
		}
		must("acquire again", err)
		must("hold the lock past the end of its first lease", locks.Work(t.ctx, t.Lease*3/4))
		_, err = other.tryAcquire(t.long(key, "contender", 0))
		mustBe("a try for the held key, in the lease that the re-entry restarted", err, locks.ErrNotAcquired)
		again.mustRelease()
	}
	if !t.Card.Unchecked {
		mustBe("the lock, after its lease", h.lost(t.Lease+t.Timeout), locks.ErrLost)
	}
	other.mustFindFree(key, "contender")
}

func lossNotice(t *trial) {
	mine, other, key := t.shortPair()
	h := mine.acquire("acquire", t.short(key, "holder"))
	must("verify the lock before its loss", h.verify())
	other.clear(key)
	mustBe("the cause with which the context of the lost lock ends", h.lost(t.Lease+t.Timeout), locks.ErrLost)
	t.mustBeRefused("release the lost lock", h.release())
	other.mustFindFree(key, "next")
}

// renewalEnd kills the holder that follows a released lock, or one that was lost and whose holder still works. If the
// renewal of the earlier lock goes on, and does not compare the owner, it renews the lock of the dead holder for ever.
func renewalEnd(t *trial) {
	mine, other, key := t.shortPair()
	mine.acquire("acquire", t.short(key, "first")).mustRelease()
	t.killNext(other, key, "after the release")
	key = t.newKey()
	lost := mine.acquire("acquire", t.short(key, "lost"))
	other.clear(key)
	t.killNext(other, key, "after the loss")
	_ = lost.release()
}

func (t *trial) killNext(other participant, key, when string) {
	killed := t.alone()
	killed.acquire("acquire "+when, t.short(key, "killed"))
	killed.worker.Kill()
	other.acquire("acquire after the lease of a killed holder, "+when, t.long(key, "next", t.Lease+t.Timeout)).mustRelease()
}
