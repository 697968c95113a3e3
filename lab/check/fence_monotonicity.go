package check

import (
	"oversell/api"
	"oversell/lab/history"
)

// FenceMonotonicity is the result of invariant I3: the fencing tokens of a key's writes never fall.
type FenceMonotonicity struct {
	Writes  int // number of writes with a fencing token; 0 means that the verdict proves nothing
	Verdict api.Verdict
	Why     api.Text
}

// Fences checks each key separately, and ignores writes without a fencing token.
//
// A replica reports a write after the write has ended. Of two writes at almost the same time, the
// later may be reported first. Only the fence column of the row has the true order.
func Fences(rec history.Recording) FenceMonotonicity {
	c := FenceMonotonicity{Verdict: api.Holds}
	top := map[string]history.Event{} // by key: the write with the highest token so far
	for _, e := range rec.Events {
		if e.Step != api.Written || e.Fence <= 0 {
			continue
		}
		c.Writes++
		if first := top[e.Key]; e.Fence >= first.Fence {
			top[e.Key] = e
		} else if c.Verdict == api.Holds {
			c.Verdict = api.Broken
			c.Why = api.Textf("%s on %s wrote %s with fence %d at %v, after %s on %s had written it with fence %d at %v.",
				"%[1]s（%[2]s）在 %[5]v 以栅栏号 %[4]d 写入 %[3]s，而 %[6]s（%[7]s）在 %[9]v 已以栅栏号 %[8]d 写入。",
				e.Owner, e.Replica, e.Key, e.Fence, brief(e.At), first.Owner, first.Replica, first.Fence, brief(first.At))
		}
	}
	switch {
	case c.Verdict == api.Broken:
	case c.Writes == 0:
		c.Why = api.Text{EN: "No write had a fencing token.", ZH: "没有带栅栏号的写入。"}
	default:
		c.Why = api.Textf("The fencing tokens of %d writes never fell.", "%d 次写入的栅栏号从未变小。", c.Writes)
	}
	return c
}
