package report

import (
	"fmt"
	"slices"
	"time"

	"oversell/lab/history"
)

// Open is what only an open loop has. There the Result's own times count from when a
// request was due, which is what its customer felt.
type Open struct {
	DuePerS  float64 `json:"due_per_s"`    // the rate that was asked for
	SentPerS float64 `json:"sent_per_s"`   // the rate that the connections allowed
	Reached  bool    `json:"reached"`      // sent at least nearly as fast as due
	FromSent Spread  `json:"from_sent_ms"` // what a closed loop would have shown
	Late     Spread  `json:"late_ms"`      // due, and not yet sent
}

// nearly is the share of the rate that counts as all of it.
const nearly = 0.95

// open is nil for a closed loop.
func open(h history.History) *Open {
	if h.Rate == 0 {
		return nil
	}
	o := &Open{
		DuePerS: round(h.Rate, 3), SentPerS: round(sentPerSecond(h), 3),
		FromSent: spread(times(h.Ops, func(op *history.Op) time.Duration { return op.Served() })),
		Late:     spread(times(h.Ops, func(op *history.Op) time.Duration { return op.Late() })),
	}
	o.Reached = o.SentPerS >= nearly*o.DuePerS
	return o
}

// sentPerSecond is the rate between the first request's due time and the last one's
// call: as many as that, but for the first.
func sentPerSecond(h history.History) float64 {
	if len(h.Ops) < 2 {
		return h.Rate
	}
	first, last := h.Ops[0].Due, h.Ops[0].Call
	for i := range h.Ops {
		first, last = min(first, h.Ops[i].Due), max(last, h.Ops[i].Call)
	}
	return ratio(float64(len(h.Ops)-1), (last - first).Seconds())
}

// anyOpen says whether there is something to show of open loops.
func anyOpen(results []Result) bool {
	return slices.ContainsFunc(results, func(r Result) bool { return r.Open != nil })
}

// openColumns stand behind JMeter's, which can't know them.
func openColumns() []column {
	cell := func(format string, of func(*Open) float64) func(Result) string {
		return func(r Result) string {
			if r.Open == nil {
				return "-"
			}
			return sampled(r, format, of(r.Open))
		}
	}
	missed := func(r Result) bool { return r.Open != nil && !r.Open.Reached }
	return []column{
		{head: "Rate due", cell: cell("%.1f/sec", func(o *Open) float64 { return o.DuePerS }), stock: true},
		{head: "Rate sent", cell: cell("%.1f/sec", func(o *Open) float64 { return o.SentPerS }), stock: true, alarm: missed},
		{head: "Median sent", cell: cell("%.1f", func(o *Open) float64 { return o.FromSent.P50 }), stock: true},
		{head: "99% sent", cell: cell("%.1f", func(o *Open) float64 { return o.FromSent.P99 }), stock: true},
	}
}

// openEN tells both ways to count, and whether the rate was reached.
func openEN(r Result) string {
	o := r.Open
	s := fmt.Sprintf("Open loop at %.6g/s: 99%% of the requests took at most %s from when they were due, and %s from when they were sent.",
		o.DuePerS, ms(r.P99MS), ms(o.FromSent.P99))
	if !o.Reached {
		s += fmt.Sprintf(" The rate was not reached: with %s only %.1f/s could be sent, and the others waited for a free one.",
			count(r.Clients, "connection", "connections"), o.SentPerS)
	}
	return s
}

// openZH is openEN in Chinese.
func openZH(r Result) string {
	o := r.Open
	s := fmt.Sprintf("开环，每秒 %.6g 个请求：99%% 的请求从应当发出时算起不超过 %s，从实际发出时算起不超过 %s。",
		o.DuePerS, ms(r.P99MS), ms(o.FromSent.P99))
	if !o.Reached {
		s += fmt.Sprintf("没有达到要求的速率：%d 个连接每秒只能发出 %.1f 个请求，其余的在等待空闲连接。", r.Clients, o.SentPerS)
	}
	return s
}
