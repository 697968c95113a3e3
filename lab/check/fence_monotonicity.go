package check

import (
	"fmt"

	"oversell/lab/history"
)

// Fall is a write whose fence was lower than that of a write before it.
type FenceRegression struct {
	Key           string
	Event, Before int // the write that fell, and the highest one before it: indices of Events
	Fence, Top    int64
}

// I3 is the third invariant: the fences of the writes to a key never fall.
type FenceMonotonicity struct {
	Writes      int              // how many with a fence were seen: a verdict on none says nothing
	Regressions int              // how many of them were below the highest before
	First       *FenceRegression // the first of these, or nil
	Verdict     Verdict
	Why         string
}

// Fences checks I3, every key by itself. A write without a fence is not judged, and an
// owner may write twice with the same one.
//
// A write is told after it was done. Of two that were done within that moment the later
// one may be told first: the row's own fence column knows the true order.
func Fences(rec history.Recording) FenceMonotonicity {
	c := FenceMonotonicity{Verdict: Holds}
	top := map[string]int{} // by key: the highest write so far
	for i, e := range rec.Events {
		if e.Step != written || e.Fence <= 0 {
			continue
		}
		c.Writes++
		before, seen := top[e.Key]
		if !seen || e.Fence >= rec.Events[before].Fence {
			top[e.Key] = i
			continue
		}
		c.Regressions++
		if c.First == nil {
			c.First = &FenceRegression{Key: e.Key, Event: i, Before: before, Fence: e.Fence, Top: rec.Events[before].Fence}
			c.Verdict = Broken
		}
	}
	c.Why = c.why(rec)
	return c
}

func (c *FenceMonotonicity) why(rec history.Recording) string {
	switch {
	case c.Writes == 0:
		return "no write bore a fence"
	case c.First == nil:
		return fmt.Sprintf("the fences of %d writes never fell", c.Writes)
	default:
		f, late, early := c.First, rec.Events[c.First.Event], rec.Events[c.First.Before]
		return fmt.Sprintf("%s on %s wrote %s with fence %d at %v, after %s on %s had written it with fence %d at %v",
			late.Owner, late.Replica, f.Key, f.Fence, brief(late.At), early.Owner, early.Replica, f.Top, brief(early.At))
	}
}
