package lockstest

import (
	"errors"
	"fmt"

	"oversell/api"
	"oversell/locks"
	"oversell/stock"
)

func fence(t *trial) {
	all, key := t.participants(3, t.Workers.Lease), t.newKey()
	last := int64(0)
	for i := range 10 {
		if i == 9 && t.Card.Family == "adapter" { // the counter may expire
			must("leave the key idle", locks.Work(t.ctx, longLook))
		}
		r := t.long(key, fmt.Sprintf("owner-%d", i), t.Timeout)
		r.Fenced = true
		h := all[i%3].acquire("acquire", r)
		if h.fence <= last {
			wrong("grant %d has fence %d, and the one before it has %d", i+1, h.fence, last)
		}
		last = h.fence
		h.mustRelease()
	}
	t.contend(all, 3, 5, true) // a waiter may have counted before its grant
}

func noFence(t *trial) {
	p, _, key := t.pair()
	r := t.long(key, "owner", 0)
	r.Fenced = true
	h := p.acquire("acquire", r)
	if h.fence != 0 {
		wrong("the grant has fence %d, and the card claims none", h.fence)
	}
	h.mustRelease()
}

// lateReceipt checks the warning of a late sale. The experiment "pause" judges lost updates.
func lateReceipt(t *trial) { _, _ = t.writeLate(false) }

func fencedWrite(t *trial) {
	lost, late := t.writeLate(true)
	if lost != 0 {
		wrong("%d updates are lost", lost)
	}
	mustBe("the late write", late, stock.ErrFenced)
}

// writeLate pauses a holder past its lease, between its last check of the lock and its write, while
// another sale is made. It returns the number of lost updates and the error of the late sale.
func (t *trial) writeLate(fenced bool) (lost int, late error) {
	const stocked = 10
	product := t.newProduct(stocked)
	o := order(product, "holder", t.Timeout)
	o.Lease, o.Fenced = t.short("", "").Lease, fenced
	successor, holder := t.participant(0, t.Workers.Lease), t.alone()
	defer holder.worker.Kill()
	sale := holder.deductUntil(o, api.Writing)
	must("pause the holder", holder.worker.Pause())
	o.Owner, o.Wait = "successor", t.Lease+t.Timeout
	_, err := successor.deduct(o)
	must("resume the holder", holder.worker.Resume())
	must("the successor's sale, after the holder's lease", err)
	must("resume the sale", sale.resume(t.ctx))
	r := holder.await(sale)
	late = r.err()
	made := 1
	if late == nil {
		made++
	}
	var known *remoteError
	switch {
	case late == nil && r.Receipt.Warning.EN == "":
		wrong("the receipt of the late sale does not warn of the lost lock")
	case late != nil && (!errors.As(late, &known) || !known.NothingTaken):
		fail("the outcome of the late sale is unknown: %w", late)
	}
	return made - (stocked - t.remaining(product)), late
}

// amnesia deletes the backend's data of a key between fenced sales. Some strategies thereby lose
// their fence counter. Each later fence must be above the fence that the stock row still has.
func amnesia(t *trial) {
	const before, after = 3, 2
	all, product := t.participants(2, t.Workers.Lease), t.newProduct(before+after)
	last := int64(0)
	for i := range before + after {
		if i == before {
			all[0].clear(api.Key(product))
		}
		o := order(product, fmt.Sprintf("owner-%d", i), t.Timeout)
		o.Fenced = true
		receipt, err := all[i%2].deduct(o)
		must(fmt.Sprintf("sale %d, where the backend loses its data after sale %d", i+1, before), err)
		if receipt.Fence <= last {
			wrong("sale %d has fence %d, and the one before it has %d", i+1, receipt.Fence, last)
		}
		last = receipt.Fence
	}
}
