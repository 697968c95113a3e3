package measure

import (
	"time"

	"oversell/lab/history"
)

// Open has the figures of an open loop, where requests are due at a fixed rate. The Result's
// own times count from when a request was due, which is what a customer experiences.
type Open struct {
	DuePerS  float64 `json:"due_per_s"`    // the planned rate
	SentPerS float64 `json:"sent_per_s"`   // the rate at which requests were sent
	Reached  bool    `json:"reached"`      // SentPerS is at least 95 % of DuePerS
	FromSent Spread  `json:"from_sent_ms"` // counted from the sending, as in a closed loop
	Late     Spread  `json:"late_ms"`      // from when a request was due until it was sent
}

// open returns the figures of an open loop, and nil for a closed loop.
func open(h history.History) *Open {
	if h.Rate == 0 {
		return nil
	}
	o := &Open{
		DuePerS: round(h.Rate, 3), SentPerS: round(sentPerSecond(h), 3),
		FromSent: spread(times(h.Ops, func(op *history.Op) time.Duration { return op.Served() })),
		Late:     spread(times(h.Ops, func(op *history.Op) time.Duration { return op.Late() })),
	}
	o.Reached = o.SentPerS >= 0.95*o.DuePerS
	return o
}

// sentPerSecond returns the rate from when the first request was due until the last was sent.
// The first request starts this time and is not counted.
func sentPerSecond(h history.History) float64 {
	if len(h.Ops) < 2 {
		return h.Rate
	}
	first, last := h.Ops[0].Due, h.Ops[0].Call
	for i := range h.Ops {
		first, last = min(first, h.Ops[i].Due), max(last, h.Ops[i].Call)
	}
	return Ratio(float64(len(h.Ops)-1), (last - first).Seconds())
}
