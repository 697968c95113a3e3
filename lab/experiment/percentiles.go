package experiment

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"oversell/lab/check"
	"oversell/lab/fault"
	"oversell/lab/history"
	"oversell/lab/load"
	"oversell/lab/report"
	"oversell/lab/rig"
)

// Both loops offer the same: far below what the shop can sell, over a few connections,
// and for so long that the frozen time is 3% of the customers', but a few requests only
// stand in the shop when it freezes: 0.3 or 0.6%. The 99th percentile is between the two.
const (
	offered       = 100 // requests in a second
	requests      = 720 // of each loop: 7 s
	closedClients = 2   // of the closed loop
	// connections of the open one: with as few, a slow machine could not keep up.
	openConnections = 4
	frozen          = 200 * time.Millisecond
	// frozenAfter answers MySQL freezes.
	frozenAfter = requests / 3
	// lying is how many times a percentile must be wrong to be called a lie.
	minRatio = 3
	// A machine that is busy with other things hides the freeze among its own. So both
	// loops are measured again, frozen for twice as long, until the freeze is standsOut
	// times what 99% of the other answers take, and for longest at most.
	standsOut = 5
	longest   = 8 * frozen
)

// percentiles freezes MySQL for a moment while a closed loop sells, and again while an
// open one does. What they say of it is the lesson, which is about measuring: the lock
// does not matter, so three stand for all.
func percentiles() Experiment {
	run := func(ctx context.Context, bed *Testbed, subjects []Subject, seed int64) (results []Result, err error) {
		for _, s := range subjects {
			result, err := bed.measureTwice(ctx, s, seed)
			if err != nil {
				return results, fmt.Errorf("%s: %w", s.Name(), err)
			}
			results = append(results, result)
		}
		return results, nil
	}
	return Experiment{
		Hazard: "percentiles", run: run,
		Applies: func(c Card) bool { return slices.Contains([]string{"for-update", "version", "redis"}, c.ID) },
		Title:   "MySQL stands still for 200 ms (longer where the machine is busy), measured twice", Shows: "a closed loop's p99 does not notice; the customers did",
	}
}

// Figure is what one measurement says of the response times, in ms.
type Figure struct {
	Loop     string  `json:"loop"` // how it asked, and from when it counts
	Samples  int     `json:"samples"`
	P50      float64 `json:"p50_ms"`
	P99      float64 `json:"p99_ms"`
	Max      float64 `json:"max_ms"`
	FrozenMS float64 `json:"frozen_ms"` // how long MySQL really stood still
}

// measured is one loop's run, and what happened in it.
type measured struct {
	history history.History
	began   time.Duration // on the recording's clock
	frozen  history.Span
	result  report.Result
}

func (m measured) figure(loop string, p50, p99, most float64) Figure {
	lasted := m.frozen.To - m.frozen.From
	return Figure{loop, len(m.history.Ops), p50, p99, most, float64(lasted.Round(time.Millisecond).Milliseconds())}
}

// measureTwice sells one product in a closed loop, then in an open one.
func (bed *Testbed) measureTwice(ctx context.Context, s Subject, seed int64) (result Result, err error) {
	const pieces = 10 * requests // more than all attempts buy
	if s.product, err = bed.addProduct(ctx, 0, pieces); err != nil {
		return result, err
	}
	plan := load.Plan{
		Target: bed.Rig.Addresses().Target, Strategy: s.Card.ID, Product: int(s.product), Qty: 1,
		Wait: 5 * time.Second, Seed: seed,
	}
	every := closedClients * time.Second / offered
	slow, open := plan, plan
	slow.Clients, slow.Loops = closedClients, requests/closedClients
	slow.Every, slow.RampUp = every, every // one after the other, not all at once
	open.Clients, open.Loops, open.Rate = openConnections, requests/openConnections, offered
	var both [2]measured
	var all []history.Op
	for lasts := frozen; lasts <= longest; lasts *= 2 {
		for i, p := range []load.Plan{slow, open} {
			if both[i], err = bed.frozenIn(ctx, p, lasts); err != nil {
				return result, err
			}
			all = append(all, both[i].history.Ops...)
		}
		if both[0].undisturbed() && both[1].undisturbed() {
			break
		}
	}
	result = Result{
		Hazard: "percentiles", Strategy: s.Card.ID, Seed: seed, Claim: s.Card.Claim("percentiles"),
		Recording: history.Recording{
			Start: bed.rec.start, Ops: slices.Concat(both[0].duringFreeze(), both[1].duringFreeze()),
			Spans: []history.Span{both[0].frozen, both[1].frozen},
		},
	}
	left, err := bed.replica(0).Count(ctx, s.Card.ID, s.product)
	if err != nil {
		return result, err
	}
	stock := check.Stock(all, pieces, left)
	result.Sold, result.Taken = stock.Sold, pieces-left
	result.compare(both[0], both[1], stock)
	return result, nil
}

// compare says whether the closed loop hid what the open one shows.
func (c *Result) compare(closed, open measured, stock check.Conservation) {
	a, b := closed.result, open.result
	c.Figures = []Figure{
		closed.figure("closed loop", a.P50MS, a.P99MS, a.MaxMS),
		open.figure("open loop, from when it was due", b.P50MS, b.P99MS, b.MaxMS),
		open.figure("open loop, from when it was sent", b.Open.FromSent.P50, b.Open.FromSent.P99, b.Open.FromSent.Max),
	}
	c.Why = fmt.Sprintf("MySQL stood still for %.0f ms: p99 %.1f ms in a closed loop; for %.0f ms: p99 %.1f ms in an open one",
		c.Figures[0].FrozenMS, a.P99MS, c.Figures[1].FrozenMS, b.P99MS)
	if !closed.undisturbed() || !open.undisturbed() {
		c.Why += "; the machine was busy with other things, which have a share in this"
	}
	if failed := a.Errors + b.Errors; failed > 0 {
		c.Why += fmt.Sprintf("; %d requests failed", failed)
	}
	switch {
	case stock.Verdict == check.Broken:
		c.Verdict, c.Invariant = Broken, Conservation
		c.Why += fmt.Sprintf("; %d sold, %d left the row", c.Sold, c.Taken)
	case stock.Verdict != check.Holds:
		c.Verdict = Unknown
		c.Why += fmt.Sprintf("; %d answers never came", stock.Unknown)
	case b.P99MS < minRatio*a.P99MS:
		c.Verdict = NotShown
	default:
		c.Verdict = Safe
	}
}

// frozenIn runs the load, and freezes MySQL when so many requests are answered.
func (bed *Testbed) frozenIn(ctx context.Context, p load.Plan, lasts time.Duration) (m measured, err error) {
	mysql, err := bed.Rig.Server("mysql")
	if err != nil {
		return m, err
	}
	struck, failed := false, error(nil)
	m.history, err = load.Run(ctx, p, func(g load.Progress) {
		if !struck && g.Done >= frozenAfter && g.Done < g.Total {
			struck = true
			m.frozen, failed = bed.freezeServer(ctx, mysql, lasts)
		}
	})
	switch {
	case err != nil || failed != nil:
		return m, errors.Join(err, failed)
	case !struck:
		return m, errors.New("the load was over before MySQL could be frozen")
	}
	m.began = m.history.Start.Sub(bed.rec.start)
	m.result = report.Summarise(m.history, report.Setup{})
	return m, nil
}

// freeze stops the server for a moment, and says how long it really was.
func (bed *Testbed) freezeServer(ctx context.Context, server *rig.Server, lasts time.Duration) (history.Span, error) {
	heal, err := fault.Stop{Server: server}.Inject(ctx)
	if err != nil {
		return history.Span{}, err
	}
	span := history.Span{What: "stopped", Who: server.Name(), From: bed.since()}
	select {
	case <-ctx.Done():
	case <-time.After(lasts):
	}
	err = heal(context.WithoutCancel(ctx))
	span.To = bed.since()
	return span, err
}

// met are the operations that met the freeze, on the recording's clock. The others are
// a thousand of one kind, which the figures stand for.
func (m measured) duringFreeze() (ops []history.Op) {
	for _, op := range m.history.Ops {
		op.Call += m.began
		op.Return += m.began
		if op.Due > 0 {
			op.Due += m.began
		}
		if m.frozenWhile(op.Return-op.Elapsed(), op.Return) {
			ops = append(ops, op)
		}
	}
	return ops
}

// calm says whether the answers that the freeze did not hold up came soon, and whether
// the shop could keep up.
func (m measured) undisturbed() bool {
	soon := (m.frozen.To - m.frozen.From) / standsOut
	slow, rest := 0, 0
	for _, op := range m.history.Ops {
		switch {
		case m.frozenWhile(m.began+op.Call, m.began+op.Return):
		case op.Served() > soon:
			slow++
		default:
			rest++
		}
	}
	// An open loop whose customers always wait is not held up by the freeze.
	return slow*100 <= slow+rest && m.result.P50MS <= float64(soon.Milliseconds())
}

func (m measured) frozenWhile(from, to time.Duration) bool {
	return from <= m.frozen.To && to >= m.frozen.From
}
