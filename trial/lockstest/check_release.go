package lockstest

import (
	"time"

	"oversell/locks"
)

func release(t *trial) {
	mine, other, key := t.pair()
	h := mine.acquire("acquire", t.long(key, "owner", 0))
	must("cancel the request", h.call.cancel(t.ctx))
	mustBe("the context of a lock whose request was cancelled", h.lost(t.Timeout), errCancelled)
	other.mustNotAcquire("after the cancellation, which is no release", key, "contender")
	must("release with a cancelled context", h.do(command{Do: doRelease, Of: h.call.id, Cancelled: true}).err())
	other.mustFindFreeNow(key, "contender")
	t.mustBeRefused("a second release", h.release())

	first := mine.acquire("acquire", t.long(key, "first", 0))
	first.mustRelease()
	second := other.acquire("acquire", t.long(key, "second", 0))
	t.mustBeRefused("a second release, when another one holds the key", first.release())
	mine.mustNotAcquire("after that second release", key, "third")

	waiter := mine.begin(t.long(key, "waiter", t.Workers.Lease)) // its last try comes long after Timeout
	settle(t.ctx)
	second.mustRelease()
	must("a waiter, after the release", mine.awaitSoon("a waiter, after the release", waiter).err())
	heldLock{participant: mine, call: waiter}.mustRelease()
	mine.awaitReleases(other, key)
}

// awaitReleases waits for a lock that is released meanwhile, each time a little later: a waiter that has tried, and
// does not listen yet, must not miss the release.
func (p participant) awaitReleases(other participant, key string) {
	end := time.Now().Add(p.Timeout / 2)
	for later := time.Duration(0); later < 15*time.Millisecond && time.Now().Before(end); later += time.Millisecond / 2 {
		h := other.acquire("acquire", p.long(key, "holder", p.Timeout))
		waiter := p.begin(p.long(key, "waiter", p.Workers.Lease))
		must("hold the lock", locks.Work(p.ctx, later))
		h.mustRelease()
		must("a waiter that began shortly before the release", p.awaitSoon("a waiter that began shortly before the release", waiter).err())
		heldLock{participant: p, call: waiter}.mustRelease()
	}
}
