package check

import (
	"fmt"

	"oversell/lab/history"
)

// FenceRegression is a write with a lower fencing token than a write before it.
type FenceRegression struct {
	Key           string
	Event, Before int // indices of the write and of the highest one before it in Events
	Fence, Top    int64
}

// FenceMonotonicity is the third invariant (I3): the fencing tokens of the writes to a key never
// fall.
type FenceMonotonicity struct {
	Writes      int              // number of writes with a fence; without any, the verdict proves nothing
	Regressions int              // number of writes below the highest token before
	First       *FenceRegression // the first of these, or nil
	Verdict     Verdict
	Why         string
}

// Fences checks fence monotonicity, for each key separately. It ignores writes without a fence.
// An owner may write twice with the same token.
//
// A write is reported after it was done. Of two writes at almost the same time, the later one
// may be reported first: only the fence column of the row has the true order.
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
		return "no write had a fencing token"
	case c.First == nil:
		return fmt.Sprintf("the fencing tokens of %d writes never fell", c.Writes)
	default:
		f, late, early := c.First, rec.Events[c.First.Event], rec.Events[c.First.Before]
		return fmt.Sprintf("%s on %s wrote %s with fence %d at %v, after %s on %s had written it with fence %d at %v",
			late.Owner, late.Replica, f.Key, f.Fence, brief(late.At), early.Owner, early.Replica, f.Top, brief(early.At))
	}
}
