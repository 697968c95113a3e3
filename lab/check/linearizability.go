package check

import (
	"cmp"
	"math"
	"slices"
	"sort"
	"time"

	"github.com/anishathalye/porcupine"

	"oversell/api"
	"oversell/lab/history"
)

// Linearizability reports whether one counter that handles one request at a time could give all
// answers. A request that ended before another began comes first (Herlihy and Wing, 1990).
type Linearizability struct {
	Ops     int // number of answers that were judged; 0 means that the verdict proves nothing
	Op      int // index of the first answer that fits no order, or -1
	Verdict api.Verdict
	Why     api.Text
}

// Linear checks the requests for one product that began with initial pieces. It judges sales, reads
// (Qty 0) and "sold out". Any other rejected request took nothing. A request with an unknown
// outcome may take effect at any time after its call, or never.
//
// The problem is NP-complete. The search ends with Inconclusive after a fixed effort, because the
// verdict must not depend on the speed of the machine.
func Linear(ops []history.Op, initial int) Linearizability {
	ends := answers(ops)
	c := Linearizability{Ops: len(ends), Op: none, Verdict: api.Holds, Why: api.Text{EN: "There was no answer to judge.", ZH: "没有可供判定的应答。"}}
	if len(ends) == 0 {
		return c
	}
	until := func(i int) api.Verdict { return search(knownAt(ops, ops[ends[i]].Return), initial) }
	c.Verdict = until(len(ends) - 1)
	switch c.Verdict {
	case api.Holds:
		c.Why = api.Textf("One order of the sales explains all answers (%d).", "有一种销售顺序能解释全部 %d 个应答。", c.Ops)
	case api.Inconclusive:
		c.Why = api.Textf("The search for an order that explains %d answers took too long.", "寻找能解释 %d 个应答的顺序，用时过长。", c.Ops)
	case api.Broken:
		// If the answers up to a time fit no order, the answers up to a later time fit none. So bisect.
		c.Op = ends[sort.Search(len(ends)-1, func(i int) bool { return until(i) == api.Broken })]
		c.Why = whyNot(c.Op, ops[c.Op])
	}
	return c
}

func whyNot(i int, op history.Op) api.Text {
	answer := api.Textf("sold %d", "卖出 %d 件", op.Qty)
	switch {
	case op.Outcome == history.Refused:
		answer = api.Textf("was sold out for %d", "对 %d 件答复售完", op.Qty)
	case op.Qty == 0:
		answer = api.Textf("read %d", "读到 %d", op.Remaining)
	case op.HasRemaining:
		answer = api.Textf("sold %d and left %d", "卖出 %d 件，剩余 %d 件", op.Qty, op.Remaining)
	}
	return api.Textf("Request %[1]d of client %[2]d %[3]s, answered at %[5]v: no order of the sales until then explains this answer.",
		"客户端 %[2]d 的第 %[1]d 个请求%[4]s，应答于 %[5]v：到那时为止，没有一种销售顺序能解释这个应答。",
		i, op.Client, answer.EN, answer.ZH, brief(op.Return))
}

// answers returns the indices of the judged requests, in the order of Return.
func answers(ops []history.Op) []int {
	var judged []int
	for i := range ops {
		if answered(&ops[i]) {
			judged = append(judged, i)
		}
	}
	slices.SortStableFunc(judged, func(a, b int) int { return cmp.Compare(ops[a].Return, ops[b].Return) })
	return judged
}

func answered(op *history.Op) bool {
	return op.Outcome == history.OK || op.Outcome == history.Refused && op.Reason == history.SoldOut
}

// request has the fields of a request that the model uses.
type request struct {
	qty          int
	outcome      history.Outcome
	remaining    int
	hasRemaining bool
	rank         int // order among unknown requests, or anyRank
}

// knownAt returns what is known about the requests at the time at. A request that has no answer at
// this time may still get any answer.
func knownAt(ops []history.Op, at time.Duration) []porcupine.Operation {
	var known, open []porcupine.Operation
	for i := range ops {
		op := &ops[i]
		o := porcupine.Operation{ClientId: max(0, op.Client-1), Call: int64(op.Call), Return: int64(op.Return)}
		in := request{qty: op.Qty, outcome: op.Outcome, remaining: op.Remaining, hasRemaining: op.HasRemaining}
		switch {
		case op.Call > at, op.Outcome == history.Refused && !answered(op):
			continue // the request took nothing, or was sent later
		case op.Return > at, !answered(op):
			if op.Qty > 0 { // an unknown read proves nothing
				in.outcome, o.Return = history.Unknown, math.MaxInt64
				o.Input = in
				open = append(open, o)
			}
			continue
		case op.Outcome == history.Refused:
			// The stock never grows, so a stock that is sold out during the request is also sold out at its
			// end. A call moved to the request's end leaves fewer orders to try.
			o.Call = o.Return
		}
		o.Input = in
		known = append(known, o)
	}
	rank(open)
	return append(known, open...)
}

// anyRank marks an unknown request that may take effect before or after any other request.
const anyRank = -1

// rank lets unknown requests take effect only in the order of their calls. Otherwise the search
// would try all subsets. Requests with another quantity than the first one get no rank.
func rank(open []porcupine.Operation) {
	slices.SortStableFunc(open, func(a, b porcupine.Operation) int { return cmp.Compare(a.Call, b.Call) })
	next, size := 0, 0
	for i := range open {
		in, _ := open[i].Input.(request)
		if i == 0 {
			size = in.qty
		}
		if in.rank = anyRank; in.qty == size {
			in.rank = next
			next++
		}
		open[i].Input = in
	}
}

// state has the stock, how many requests have seen it, and the next unknown request's rank.
type state struct{ count, seen, next int }

// model maps each count of the stock to the number of answers that saw this count. The stock never
// grows, so all these requests come before the count changes. This shortens the search.
type model map[int]int

func modelOf(requests []porcupine.Operation) model {
	m := model{}
	for _, o := range requests {
		if r, _ := o.Input.(request); r.outcome == history.OK && r.hasRemaining {
			m[r.remaining+r.qty]++
		}
	}
	return m
}

// after returns the state after the request, or false if the request's answer contradicts s.
func (m model) after(s state, r request) (state, bool) {
	switch {
	case r.outcome == history.Refused:
		return s, s.count < r.qty
	case r.outcome == history.OK:
		if r.hasRemaining {
			if s.count != r.remaining+r.qty {
				return s, false
			}
			s.seen++
		}
		return m.take(s, r.qty)
	case r.rank != anyRank && r.rank != s.next:
		return s, false
	}
	// The outcome is unknown. A request that never took effect needs no case of its own: it may come
	// last in the order, where no answer shows its effect.
	if r.rank != anyRank {
		s.next++
	}
	if s.count < r.qty {
		return s, true
	}
	return m.take(s, r.qty)
}

// take returns false if too few are left, or if a request that saw this count is still to come.
func (m model) take(s state, qty int) (state, bool) {
	if qty == 0 {
		return s, true
	}
	return state{count: s.count - qty, next: s.next}, s.count >= qty && s.seen == m[s.count]
}

// effort limits a search to 128 MB of memory (words of 8 bytes), and so to some seconds.
const effort = 1 << 24

func search(requests []porcupine.Operation, initial int) api.Verdict {
	return explains(requests, state{count: initial}, modelOf(requests).after, func(a, b state) bool { return a == b })
}

// explains reports whether one order of the operations fits a model, from its first state on. after returns the state
// after an input, or false if the input contradicts the state before.
func explains[State, Input any](
	ops []porcupine.Operation, first State, after func(State, Input) (State, bool), equal func(a, b State) bool,
) api.Verdict {
	left, price := effort, len(ops)/64+8
	found := porcupine.CheckOperations(porcupine.Model{
		Init: func() any { return first },
		Step: func(before, input, _ any) (bool, any) {
			s, _ := before.(State)
			in, _ := input.(Input)
			next, fits := after(s, in)
			if fits {
				left -= price
			}
			return fits && left >= 0, next // no operation fits when left is used up, so the search ends
		},
		Equal: func(a, b any) bool {
			one, _ := a.(State)
			other, _ := b.(State)
			return equal(one, other)
		},
	}, ops)
	switch {
	case found:
		return api.Holds
	case left < 0:
		return api.Inconclusive
	default:
		return api.Broken
	}
}
