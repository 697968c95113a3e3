package lockstest

import (
	"oversell/api"
	"oversell/locks"
)

// damages are the ways in which a lock may end, or not begin, so that its process keeps a wrong entry about the key:
// a renewal that "runs already", a turn that nobody gives back, a count of owners.
func damages() []damage {
	always := func(api.Card) bool { return true }
	return []damage{
		{"was lost", func(c api.Card) bool { return c.Lease }, func(t *trial, mine, other participant, r locks.Request) {
			h := mine.acquire("acquire", r)
			other.clear(r.Key)
			_ = h.lost(t.Lease) // a renewal fails meanwhile, even if nobody is notified
			_ = h.release()
		}},
		{"was not renewed, and ended", ends, func(t *trial, mine, other participant, r locks.Request) {
			r.NoRenew = t.Card.Renews
			t.outlive(mine, other, r, func() error { return nil }, func() error { return nil })
		}},
		{"ended during a pause", func(c api.Card) bool { return c.Lease }, func(t *trial, mine, other participant, r locks.Request) {
			t.outlive(mine, other, r, mine.worker.Pause, mine.worker.Resume)
		}},
		{"was released twice", always, func(_ *trial, mine, _ participant, r locks.Request) {
			h := mine.acquire("acquire", r)
			h.mustRelease()
			_ = h.release()
		}},
		{"was not acquired in time", always, func(t *trial, mine, other participant, r locks.Request) {
			h := other.acquire("acquire", t.long(r.Key, "other", t.Timeout))
			r.Wait = t.Lease / 4
			_, _ = mine.tryAcquire(r)
			h.mustRelease()
		}},
		{"was cancelled in its wait", always, func(t *trial, mine, other participant, r locks.Request) {
			h := other.acquire("acquire", t.long(r.Key, "other", t.Timeout))
			waiter := mine.begin(t.long(r.Key, "holder", t.Workers.Lease))
			settle(t.ctx)
			must("cancel a waiter", waiter.cancel(t.ctx))
			mine.awaitSoon("a cancelled waiter", waiter)
			h.mustRelease()
		}},
	}
}

type damage struct {
	name    string // what happened to the earlier lock
	applies func(api.Card) bool
	do      func(t *trial, mine, other participant, r locks.Request)
}

// outlive lets another process acquire the lock of a holder after its lease, and the holder release it then.
func (t *trial) outlive(mine, other participant, r locks.Request, pause, resume func() error) {
	h := mine.acquire("acquire", r)
	must("pause the holder", pause())
	next := other.acquire("acquire after the lease of a holder", t.long(r.Key, "next", t.Lease+t.Timeout))
	must("resume the holder", resume())
	_ = h.release()
	_ = next.release() // the late release may have freed it: other checks judge that
}

// reuse does all damage in one process, and then acquires the same keys in it. They must stay locked for some leases.
func reuse(t *trial) {
	mine, other := t.alone(), t.participant(0, t.defaultLease())
	defer mine.worker.Kill()
	var again []locks.Request
	var after []string
	for _, d := range damages() {
		if !d.applies(t.Card) {
			continue
		}
		r := t.short(t.newKey(), "holder")
		d.do(t, mine, other, r)
		if r.Wait = t.Timeout; !t.Card.Renews {
			r.Lease = t.long("", "", 0).Lease
		}
		again, after = append(again, r), append(after, "acquire again in the process of a lock that "+d.name)
	}
	held := make([]heldLock, len(again))
	for i, r := range again {
		held[i] = mine.acquire(after[i], r)
	}
	if t.Card.Renews {
		t.mustStayHeld(other, 2*t.Lease+t.Lease/3, held...)
	}
	for i, h := range held {
		must(h.what+": release", h.release())
		other.mustFindFreeNow(again[i].Key, "contender")
		again[i].Owner = "another/" + again[i].Key
		mine.acquire(h.what+", for another owner", again[i]).mustRelease()
	}
}
