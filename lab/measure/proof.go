package measure

import (
	"cmp"
	"fmt"

	"oversell/api"
	"oversell/lab/check"
	"oversell/lab/history"
)

// weigh sets Cause, and withdraws a good verdict, if less than half of what could be sold was sold, or nothing: no
// update is lost either while a server is down. An update that was lost stays lost, however little was sold.
//
// A conflict counts as a request that could not sell, because the strategy itself has prevented a lost update.
func (r *Result) weigh(ops []history.Op, c check.Conservation) {
	pieces := 0
	for i := range ops {
		if ops[i].Reason != string(api.Conflict) {
			pieces += ops[i].Qty
		}
	}
	qty := max(1, r.Qty)
	could, sold := min(pieces, r.Stock/qty*qty), c.Sold
	if c.Verdict == api.Holds {
		sold += c.Unknown
	}
	if sold == 0 || 2*sold < could {
		r.Cause = r.cause()
		if r.Verdict == api.Holds {
			r.Verdict = api.Inconclusive
		}
	}
}

// cause says what most of the requests met that sold nothing.
func (r *Result) cause() api.Text {
	switch {
	case r.Samples == 0:
		return api.Text{EN: "no request was sent", ZH: "没有发出任何请求"}
	case r.Stock < max(1, r.Qty):
		return api.Textf("nothing to sell: the stock was %d", "没有可卖的：库存是 %d", r.Stock)
	case len(r.Failures) == 0 || r.SoldOut > r.Failures[0].Count:
		return api.Textf(`%[1]d of %[2]d requests were answered "sold out", although pieces were left`, "%[2]d 个请求中有 %[1]d 个得到“已售完”，而库存还有", r.SoldOut, r.Samples)
	}
	most := r.Failures[0]
	switch backend := cmp.Or(most.Backend, "a backend"); most.Reason {
	case history.Unavailable:
		return api.Textf("%[1]s is unavailable: %[3]d of %[4]d requests", "%[2]s 不可用：%[4]d 个请求中的 %[3]d 个", backend, cmp.Or(most.Backend, "后端"), most.Count, r.Samples)
	default:
		why := reason(most)
		return api.Text{EN: fmt.Sprintf("%d of %d requests %s", most.Count, r.Samples, why.EN), ZH: fmt.Sprintf("%d 个请求中有 %d 个%s", r.Samples, most.Count, why.ZH)}
	}
}

// ErrorsOnly reports whether the throughput and the response times are those of errors, and no measurement of the
// strategy: too little was sold, or most of the requests failed.
func (r Result) ErrorsOnly() bool {
	failed := r.Errors
	for _, f := range r.Failures {
		if f.Reason == string(api.Conflict) {
			failed -= f.Count
		}
	}
	return r.Cause.EN != "" || 2*failed > r.Samples
}

// Rate returns the throughput, or 0 if that is the speed of errors.
func (r Result) Rate() float64 {
	if r.ErrorsOnly() {
		return 0
	}
	return r.ThroughputPerS
}
