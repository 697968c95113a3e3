package experiment

import (
	"context"
	"errors"
	"slices"
	"time"

	"oversell/api"
	"oversell/lab/check"
	"oversell/lab/fault"
	"oversell/lab/history"
	"oversell/lab/load"
	"oversell/lab/measure"
	"oversell/lab/player"
	"oversell/lab/rig"
)

// Both loops send at the same rate, far below the limit of the service. The freeze takes 3% of the
// time, so it delays 3% of the open loop's requests. In the closed loop, only the requests in
// progress are delayed: 0.3 or 0.6%. So only the open loop's 99th percentile shows the freeze.
const (
	offered       = 100 // requests per second
	requests      = 720 // requests of each loop, which take 7 s
	closedClients = 2   // of the closed loop
	// The open loop needs more connections: with two, a slow machine could not keep the rate.
	openConnections = 4
	frozen          = 200 * time.Millisecond
	// After frozenAfter answers to the clients, the experiment pauses MySQL.
	frozenAfter = requests / 3
	// minRatio is the minimum ratio of the open loop's p99 to the closed loop's.
	minRatio = 3
	// Other load can hide the freeze. Both loops are then repeated with a doubled freeze, up to
	// longest. The freeze must last standsOut times as long as 99% of the other answers.
	standsOut = 5
	longest   = 8 * frozen
)

// percentiles freezes MySQL during a closed and an open loop, and compares their response times.
// The lock does not matter, so three strategies are enough.
func percentiles() Experiment {
	return Experiment{
		Hazard: "percentiles", Group: costly,
		Title: api.Text{
			EN: "MySQL freezes for 200 ms (longer on a busy machine), measured twice",
			ZH: "MySQL 停顿 200 毫秒（机器忙时更长），测量两次",
		},
		Shows:   api.Text{EN: "the p99 of a closed loop hides what clients waited for", ZH: "闭环的 p99 看不到停顿，开环的 p99 看得到"},
		Applies: func(c api.Card) bool { return slices.Contains([]string{"for-update", "version", "redis"}, c.ID) },
		perform: func(ctx context.Context, r *round) ([]Result, error) {
			const stock = 10 * requests // more than all attempts buy
			return r.each(ctx, stock, func(s player.Subject) (Result, error) { return r.measureTwice(ctx, s, stock) })
		},
	}
}

// Figure holds the response times of one measurement, in ms.
type Figure struct {
	Loop     api.Text `json:"loop"` // kind of load, and the moment from which the time counts
	Samples  int      `json:"samples"`
	P50      float64  `json:"p50_ms"`
	P99      float64  `json:"p99_ms"`
	Max      float64  `json:"max_ms"`
	FrozenMS float64  `json:"frozen_ms"` // measured length of the freeze
}

// measured is the run of one loop. All its times are on the recording's clock.
type measured struct {
	ops    []history.Op
	frozen history.Span
	result measure.Result
}

func (m measured) figure(loop api.Text, p50, p99, most float64) Figure {
	lasted := m.frozen.To - m.frozen.From
	return Figure{loop, len(m.ops), p50, p99, most, float64(lasted.Round(time.Millisecond).Milliseconds())}
}

func (r *round) measureTwice(ctx context.Context, s player.Subject, stock int) (result Result, err error) {
	plan := load.Plan{
		Target: r.bed.Rig.Addresses().Target, Strategy: s.Card.ID, Product: int(s.Product), Qty: 1,
		Wait: 5 * time.Second, Seed: r.seed,
	}
	every := closedClients * time.Second / offered
	closed, open := plan, plan
	closed.Clients, closed.Loops = closedClients, requests/closedClients
	closed.Every, closed.RampUp = every, every // the clients start one after the other
	open.Clients, open.Loops, open.Rate = openConnections, requests/openConnections, offered
	var both [2]measured
	var all []history.Op
	for lasts := frozen; lasts <= longest; lasts *= 2 {
		for i, p := range []load.Plan{closed, open} {
			if both[i], err = frozenIn(ctx, r.bed, p, lasts); err != nil {
				return result, err
			}
			all = append(all, both[i].ops...)
		}
		if both[0].undisturbed() && both[1].undisturbed() {
			break
		}
	}
	result = r.safe(s, r.recording(s, stock, all))
	conservation, err := r.count(ctx, 0, s, &result)
	if err != nil {
		return result, err
	}
	result.Recording = history.Recording{
		Start: result.Recording.Start, Ops: slices.Concat(both[0].duringFreeze(), both[1].duringFreeze()),
		Spans: []history.Span{both[0].frozen, both[1].frozen},
	}
	result.compare(both[0], both[1], conservation)
	return result, nil
}

// compare sets the verdict to Safe if the open loop shows a delay that the closed loop hides, and
// otherwise to NotShown. If the check of the stock fails, the verdict is Broken or Inconclusive.
func (r *Result) compare(closed, open measured, stock check.Conservation) {
	a, b := closed.result, open.result
	r.Figures = []Figure{
		closed.figure(api.Text{EN: "closed loop", ZH: "闭环"}, a.P50MS, a.P99MS, a.MaxMS),
		open.figure(api.Text{EN: "open loop, from when it was due", ZH: "开环，从应发出的时刻算起"}, b.P50MS, b.P99MS, b.MaxMS),
		open.figure(api.Text{
			EN: "open loop, from when it was sent",
			ZH: "开环，从实际发出的时刻算起",
		}, b.Open.FromSent.P50, b.Open.FromSent.P99, b.Open.FromSent.Max),
	}
	r.Why = api.Textf("In the closed loop, MySQL froze for %.0f ms, and the p99 was %.1f ms. In the open loop, it froze for %.0f ms, and the p99 was %.1f ms.",
		"闭环中 MySQL 停顿 %.0f 毫秒，p99 为 %.1f 毫秒。开环中停顿 %.0f 毫秒，p99 为 %.1f 毫秒。",
		r.Figures[0].FrozenMS, a.P99MS, r.Figures[1].FrozenMS, b.P99MS)
	if !closed.undisturbed() || !open.undisturbed() {
		r.Why = api.Joined(r.Why, api.Text{
			EN: "The machine was busy with other work, which also slowed the requests.", ZH: "机器当时很忙，其他负载也拖慢了请求。",
		})
	}
	if failed := a.Errors + b.Errors; failed > 0 {
		r.Why = api.Joined(r.Why, api.Textf("%d requests failed.", "%d 个请求失败。", failed))
	}
	switch {
	case stock.Verdict == api.Broken:
		r.Verdict, r.Invariant = api.Broken, Conservation
		r.Why = api.Joined(r.Counts(), r.Why)
	case stock.Verdict != api.Holds:
		r.Verdict = api.Inconclusive
		r.Why = api.Joined(r.Why, api.Textf("%d requests had no answer.", "%d 个请求没有应答。", stock.Unknown))
	case b.P99MS < minRatio*a.P99MS:
		r.Verdict = api.NotShown
	default:
		r.Verdict = api.Safe
	}
}

func frozenIn(ctx context.Context, bed *player.Testbed, p load.Plan, lasts time.Duration) (m measured, err error) {
	mysql, err := bed.Rig.Server("mysql")
	if err != nil {
		return m, err
	}
	var failed error
	run, err := load.Run(ctx, p, func(g load.Progress) {
		if m.frozen.What == "" && g.Done >= frozenAfter && g.Done < g.Total {
			m.frozen, failed = freezeServer(ctx, bed, mysql, lasts)
		}
	})
	switch {
	case err != nil || failed != nil:
		return m, errors.Join(err, failed)
	case m.frozen.What == "":
		return m, errors.New("the load was over before MySQL could be frozen")
	}
	m.result, m.ops = measure.Summarise(run, measure.Setup{}), run.Ops
	began := bed.Since() - time.Since(run.Start)
	for i := range m.ops {
		op := &m.ops[i]
		op.Call, op.Return = op.Call+began, op.Return+began
		if op.Due > 0 {
			op.Due += began
		}
	}
	return m, nil
}

func freezeServer(ctx context.Context, bed *player.Testbed, server *rig.Server, lasts time.Duration) (history.Span, error) {
	span := history.Span{What: "stopped", Who: server.Name()}
	heal, err := fault.Stop(server).Inject(ctx)
	if err != nil {
		return span, err
	}
	span.From = bed.Since()
	_ = load.Sleep(ctx, lasts)
	err = heal(context.WithoutCancel(ctx))
	span.To = bed.Since()
	return span, err
}

// duringFreeze returns only the requests that the freeze delayed. All other requests look alike.
func (m measured) duringFreeze() []history.Op {
	return slices.DeleteFunc(slices.Clone(m.ops), func(op history.Op) bool { return !m.frozenWhile(op.Return-op.Elapsed(), op.Return) })
}

// undisturbed reports whether answers outside the freeze came soon, and the service kept up.
func (m measured) undisturbed() bool {
	soon := (m.frozen.To - m.frozen.From) / standsOut
	slow, rest := 0, 0
	for _, op := range m.ops {
		switch {
		case m.frozenWhile(op.Call, op.Return):
		case op.Served() > soon:
			slow++
		default:
			rest++
		}
	}
	// An open loop whose requests always wait does not show the freeze.
	return slow*100 <= slow+rest && m.result.P50MS <= float64(soon.Milliseconds())
}

func (m measured) frozenWhile(from, to time.Duration) bool {
	return from <= m.frozen.To && to >= m.frozen.From
}
