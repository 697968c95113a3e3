package lockstest

import (
	"fmt"
	"time"

	"oversell/locks"
)

// timeOut checks that a waiter gives up after its wait, even if that is longer than a lease.
func timeOut(t *trial) {
	mine, other, key := t.shortPair()
	if !t.Card.Renews { // a short lease would end during the long wait
		mine, other, key = t.pair()
	}
	h := mine.acquire("acquire", t.long(key, "holder", 0))
	waits := []time.Duration{0, 300 * time.Millisecond, t.Lease + t.Lease/3}
	if admitsOverrun(t.Card) {
		waits = waits[:2]
	}
	for _, wait := range waits {
		for _, p := range []participant{mine, other} {
			what := fmt.Sprintf("a wait of %v for a held key", wait)
			waiter, err := p.tryAcquire(t.long(key, "waiter", wait))
			mustBe(what, err, locks.ErrNotAcquired)
			if waiter.took < wait {
				wrong("%s ended after %v", what, waiter.took)
			} else if waiter.took > wait+t.Timeout {
				fail("%s ended after %v", what, waiter.took)
			}
		}
	}
	must("verify the holder's lock after these waits", h.verify())
	h.mustRelease()
}

// cancellation checks that a request gets the key as if the cancelled waiters had never waited.
func cancellation(t *trial) {
	all, key := t.participants(3, t.Workers.Lease), t.newKey()
	h := all[0].acquire("acquire", t.long(key, "holder", 0))
	for i, p := range all[:2] {
		waiter := p.begin(t.long(key, fmt.Sprintf("waiter-%d", i), t.Workers.Lease))
		settle(t.ctx)
		cancelled := time.Now()
		must("cancel a waiter", waiter.cancel(t.ctx))
		mustBe("a cancelled waiter", p.awaitSoon("a cancelled waiter", waiter).err(), locks.ErrNotAcquired, errCancelled)
		// Our side of an adapter does not wait longer than two seconds for a program that ignores a cancel.
		if took := time.Since(cancelled); t.Card.Family == "adapter" && took > 1500*time.Millisecond {
			fail("a cancelled waiter answered only after %v, or not at all", took.Round(time.Millisecond))
		}
	}
	_, err := all[1].tryAcquire(t.long(key, "timed-out", 100*time.Millisecond))
	mustBe("a waiter whose wait is over", err, locks.ErrNotAcquired)
	next := all[2].begin(t.long(key, "next", t.Timeout))
	settle(t.ctx)
	h.mustRelease()
	must("the next waiter, after the holder's release", all[2].await(next).err())
	heldLock{participant: all[2], call: next}.mustRelease()
	settle(t.ctx) // a cancelled waiter that still runs acquires the lock now

	r := t.long(key, "cancelled", t.Timeout)
	err = all[1].do(command{Do: doAcquire, Request: r, Cancelled: true}).err()
	mustBe("a request that was cancelled before it began", err, locks.ErrNotAcquired, errCancelled)
	all[0].mustFindFree(key, "next")
}

// cleanUp cancels acquisitions at random times. The leases are long, so a lock that a cancelled
// acquisition left behind would block the next request.
func cleanUp(t *trial) {
	all, key := t.participants(3, t.Workers.Lease), t.newKey()
	t.churn("on a free key", all[:2], key, 60, 10)
	settle(t.ctx) // a cancelled acquisition that still runs acquires the lock now
	all[2].mustFindFree(key, "next")
	h := all[2].acquire("acquire", t.long(key, "holder", 0))
	t.churn("on a held key", all[:2], key, 30, 20)
	h.mustRelease()
	settle(t.ctx)
	all[2].mustFindFree(key, "next")
}

// churn cancels each acquisition after 5 ms at the latest.
func (t *trial) churn(when string, all []participant, key string, rounds int, seed uint64) {
	calls := make([]*call, len(all))
	for i, p := range all {
		calls[i] = p.send(command{
			Do: doChurn, Request: t.long(key, fmt.Sprintf("cancelled-%d", i), t.Workers.Lease),
			Rounds: rounds, Wait: 5 * time.Millisecond, Seed: seed + uint64(i),
		})
	}
	for i, c := range calls {
		must("cancelled acquisitions "+when, all[i].await(c).err())
	}
}
