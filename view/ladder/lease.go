package ladder

import (
	"slices"
	"time"

	"oversell/lab/history"
)

// lapses reports whether the lease ended before the holder released the lock, or the lock was lost.
func (s stretch) lapses() bool { return s.lapse > 0 && s.lapse < s.to }

// findLapses sets the time at which each holder's lease ended. No step reports it: it follows from
// the grant, the lease, the fault that prevents renewals, and the grant to the next holder.
func (t Recorded) findLapses(rec history.Recording) {
	if rec.Lease == 0 {
		return
	}
	for _, task := range t.tasks {
		for i := range task.holds {
			h := &task.holds[i]
			h.lapse = t.leaseEnd(task, *h, rec)
			next, granted := t.nextGrant(task, *h)
			// The next holder has the lock, so the lease had ended by then.
			if granted && (h.lapse == 0 || next < h.lapse) {
				// A lease that is only a little shorter than computed was not renewed for a while.
				h.lost = h.lapse == 0 || next < h.lapse-rec.Lease/2
				h.lapse = next
			}
		}
	}
}

// leaseEnd returns when the lease ends by its length. It returns 0 if the lease is renewed until the
// release.
func (t Recorded) leaseEnd(holder *task, h stretch, rec history.Recording) time.Duration {
	if !rec.Renews {
		return h.from + rec.Lease
	}
	fault, there := t.silencing(holder, h)
	if !there {
		return 0
	}
	// A holder renews each time that a third of the lease has passed.
	third := rec.Lease / 3
	return h.from + (fault.From-h.from)/third*third + rec.Lease
}

// silencing returns the fault that prevents the holder from renewing its lease.
func (t Recorded) silencing(holder *task, h stretch) (history.Span, bool) {
	for _, s := range t.spans {
		silent := slices.Contains([]history.Kind{history.Frozen, history.Killed, history.CutOff}, s.Kind())
		if s.Who == holder.replica && silent && s.From >= h.from && s.From < h.to {
			return s, true
		}
	}
	return history.Span{}, false
}

// nextGrant returns when another request acquired the lock during the hold.
func (t Recorded) nextGrant(holder *task, h stretch) (time.Duration, bool) {
	for _, o := range t.overlaps {
		if o.first == holder && h.from <= o.from && o.from < h.to {
			return o.from, true
		}
	}
	return 0, false
}
