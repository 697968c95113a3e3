package check

import (
	"fmt"
	"time"

	"oversell/lab/history"
)

// I4 is the fourth invariant: after a fault, the next grant comes within a bound.
type I4 struct {
	Took    time.Duration // from the fault to the grant; 0 without a grant
	Event   int           // the grant's index of Events, or -1
	Owner   string        // whose grant it was
	Verdict Verdict
	Why     string
}

// NextGrant checks I4: from since on, somebody else than the victim must be granted the
// key within bound. A grant that comes too late is Violated, and its time is told.
//
// Undecided means that there was nothing to see: nobody wanted the key, or the recording
// ended before the bound did.
func NextGrant(rec history.Recording, key, victim string, since, bound time.Duration) I4 {
	c := I4{Event: none}
	deadline := since + bound
	for i, e := range rec.Events {
		if e.Key == key && e.Step == granted && e.Owner != victim && e.At >= since {
			c.Took, c.Event, c.Owner = e.At-since, i, e.Owner
			break
		}
	}
	found := c.Event != none
	switch {
	case found && c.Took <= bound:
		c.Verdict = Holds
		c.Why = fmt.Sprintf("%s was granted %s %v after the fault", c.Owner, key, brief(c.Took))
	case !wanted(rec.Events, key, victim, deadline):
		c.Verdict = Undecided
		c.Why = fmt.Sprintf("nobody wanted %s within %v after the fault", key, bound)
	case found:
		c.Verdict = Violated
		c.Why = fmt.Sprintf("%s was granted %s only %v after the fault, and not within %v", c.Owner, key, brief(c.Took), bound)
	case recorded(rec) < deadline:
		c.Verdict = Undecided
		c.Why = fmt.Sprintf("the recording ended at %v, before the %v after the fault were over", brief(recorded(rec)), bound)
	default:
		c.Verdict = Violated
		c.Why = fmt.Sprintf("somebody waited for %s, and nobody was granted it within %v after the fault", key, bound)
	}
	return c
}

// wanted says whether anybody but the victim waits for the key at the deadline. A lock
// that nobody wants is not stalled.
func wanted(events []history.Event, key, victim string, deadline time.Duration) bool {
	waiting := map[string]bool{}
	for _, e := range events {
		if e.Key != key || e.Owner == victim || e.At > deadline {
			continue
		}
		switch e.Step {
		case asked, queued:
			waiting[e.Owner] = true
		case granted:
			delete(waiting, e.Owner)
		}
	}
	return len(waiting) > 0
}
