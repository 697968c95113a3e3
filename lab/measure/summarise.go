package measure

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"oversell/api"
	"oversell/lab/check"
	"oversell/lab/history"
	"oversell/lab/load"
)

// Setup has the parameters and conditions of a run, and the stock after it.
type Setup struct {
	load.Plan
	Conditions

	Safe      bool
	SafeAlone bool // the card claims safety only if one replica serves all requests
	Overrun   bool // the work takes longer than the lease, and the card says that this breaks the strategy
	Stock     int
	Remaining *int // nil if it could not be read
	Warnings  []string
	Flushes   int // FLUSHALL and FLUSHDB that the strategy's Redis servers executed during the run
}

// Conditions describe the lab of a run.
type Conditions struct {
	Machine  Machine
	Versions map[string]string
	Delay    time.Duration // of each answer of a server to a replica
	Fsync    bool          // the servers sync each write to the disk
	Disk     time.Duration // added to each such sync
}

// Summarise computes the figures and the verdict of one history.
func Summarise(h history.History, s Setup) Result {
	r := Result{
		Strategy: h.Strategy, Safe: s.Safe, Partial: partial(h),
		Clients: h.Clients, Loops: h.Loops, RampUpMS: millis(s.RampUp), HoldMS: millis(s.Hold), OutsideMS: millis(s.Outside), WaitMS: millis(s.Wait), PauseMS: millis(s.Pause), LeaseMS: millis(s.Lease),
		DelayMS: millis(s.Delay), Fsync: s.Fsync, DiskMS: millis(s.Disk),
		LengthMS: millis(h.Length), Stock: s.Stock, Qty: s.Qty, Seed: s.Seed, Target: s.Target, Remaining: s.Remaining,
		StartedAt: h.Start, Machine: s.Machine, Versions: s.Versions, Warnings: append([]string{}, s.Warnings...),
		Fairness: round(fairness(h), 4), Replicas: replicas(h.Ops), Series: series(h.Ops), Failures: failures(h.Ops), Open: open(h), Flushes: s.Flushes,
		Load: round(h.Load, 3), Others: h.Others,
	}
	r.Alone = s.SafeAlone && !s.Safe && len(r.Replicas) == 1
	r.Overrun = s.Overrun
	r.Safe = (r.Safe || r.Alone) && !r.Overrun
	r.count(h.Ops)
	r.measure(h.Ops)
	r.judge(h.Ops)
	r.Sentence = sentence(r)
	if r.Flushes > 0 {
		r.Verdict = api.Inconclusive
	}
	return r
}

func partial(h history.History) bool {
	interrupted := func(op history.Op) bool { return op.Reason == history.Interrupted }
	return h.Stopped || h.Length == 0 && len(h.Ops) < h.Clients*h.Loops || slices.ContainsFunc(h.Ops, interrupted)
}

func (r *Result) judge(ops []history.Op) {
	c := check.Undecidable(ops, r.Stock)
	if r.Remaining != nil {
		c = check.Stock(ops, r.Stock, *r.Remaining)
	}
	r.Verdict, r.Sold, r.Unknown = c.Verdict, c.Sold, c.Unknown
	r.LostUpdates, r.LostUpdatesMax, r.Oversold = c.Lost(), c.LostMax, c.Oversold()
	r.weigh(ops, c)
}

func (r *Result) count(ops []history.Op) {
	in, out := 0, 0
	for i := range ops {
		op := &ops[i]
		in += op.BytesIn
		out += op.BytesOut
		r.Retries += op.Retries
		if op.Failed() {
			r.Errors++
		}
		switch {
		case op.Outcome == history.Refused && op.Reason == history.SoldOut:
			r.SoldOut++
		case op.Reason == history.NotAcquired:
			r.NotAcquired++
		}
	}
	first, last := span(ops)
	seconds := (last - first).Seconds()
	r.Samples, r.ErrorPct = len(ops), round(100*Ratio(float64(r.Errors), float64(len(ops))), 3)
	r.DurationS = round(seconds, 3)
	r.ThroughputPerS = round(Ratio(float64(len(ops)), seconds), 3)
	r.ReceivedKBPerS = round(Ratio(float64(in)/1024, seconds), 3)
	r.SentKBPerS = round(Ratio(float64(out)/1024, seconds), 3)
}

func (r *Result) measure(ops []history.Op) {
	elapsed := times(ops, func(op *history.Op) time.Duration { return op.Elapsed() })
	r.MeanMS, r.MinMS, r.MaxMS = millis(mean(elapsed)), millis(Percentile(elapsed, 0)), millis(Percentile(elapsed, 1))
	r.P50MS, r.P90MS = millis(Percentile(elapsed, 0.50)), millis(Percentile(elapsed, 0.90))
	r.P95MS, r.P99MS = millis(Percentile(elapsed, 0.95)), millis(Percentile(elapsed, 0.99))
	r.Waited = spread(times(ops, func(op *history.Op) time.Duration { return op.Waited }))
	r.Held = spread(times(ops, func(op *history.Op) time.Duration { return op.Held }))
	r.Pooled = spread(times(ops, func(op *history.Op) time.Duration { return op.Pooled }))
}

func failures(ops []history.Op) []Reason {
	type key struct {
		reason, backend string
		unknown         bool
	}
	groups := map[key]Reason{}
	for i := range ops {
		op := &ops[i]
		if !op.Failed() {
			continue
		}
		k := key{op.Reason, op.Backend, op.Outcome == history.Unknown}
		g, ok := groups[k]
		if !ok {
			g = Reason{Reason: k.reason, Backend: k.backend, Unknown: k.unknown, Detail: op.Detail}
		}
		g.Count++
		groups[k] = g
	}
	all := slices.AppendSeq([]Reason{}, maps.Values(groups))
	slices.SortFunc(all, func(a, b Reason) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Reason, b.Reason), cmp.Compare(a.Backend, b.Backend))
	})
	return all
}

func replicas(ops []history.Op) []ReplicaCount {
	counts := map[string]ReplicaCount{}
	for i := range ops {
		op := &ops[i]
		if op.Replica == "" {
			continue
		}
		c := counts[op.Replica]
		c.Replica = op.Replica
		c.Samples++
		if op.Outcome == history.OK {
			c.Sold++
		}
		counts[op.Replica] = c
	}
	all := slices.AppendSeq([]ReplicaCount{}, maps.Values(counts))
	slices.SortFunc(all, func(a, b ReplicaCount) int { return cmp.Compare(a.Replica, b.Replica) })
	return all
}
