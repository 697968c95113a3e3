package main

import (
	"context"
	"fmt"
	"net/http"

	"oversell/api"
	"oversell/lab/history"
	"oversell/lab/load"
	"oversell/lab/measure"
	"oversell/lab/rig"
)

const (
	product = 1
	// fullStock is more than the number of items that one measurement can sell.
	fullStock = 1_000_000
)

// figures are the results of one measurement.
type figures struct {
	measure.Result
	each   float64            // requests to the lock's backend for each grant
	memory float64            // resident memory of the replica that has most, in MB; 0 if it was not read
	spent  map[string]float64 // processor time of a sale in microseconds, by the processes; nil if it was not read
}

// figure is one of the figures.
type figure func(figures) float64

func rate(f figures) float64     { return measure.Ratio(float64(f.Sold), f.DurationS) }
func p50(f figures) float64      { return f.P50MS }
func p99(f figures) float64      { return f.P99MS }
func most(f figures) float64     { return f.MaxMS }
func lost(f figures) float64     { return float64(f.LostUpdates) }
func fairness(f figures) float64 { return f.Fairness }
func each(f figures) float64     { return f.each }
func retries(f figures) float64  { return float64(f.Retries) / float64(max(1, f.Sold)) }
func failed(f figures) float64   { return float64(f.Errors) }
func memory(f figures) float64   { return f.memory }
func share(f figures) float64    { return f.Load }

func values(all []figures, of figure) (values []float64) {
	for _, f := range all {
		values = append(values, of(f))
	}
	return values
}

// exact returns an error if an update was lost or a request failed, because the rates cannot be compared then.
func exact(f figures, err error) (figures, error) {
	if err == nil && (f.LostUpdates != 0 || f.Errors > 0) {
		err = fmt.Errorf("the rates cannot be compared: %s", f.Sentence.EN)
	}
	return f, err
}

// send resets the stock, sends the requests of a plan to the lab's target, and reads the stock. A plan
// with a Path sells nothing, so each of its answers counts as a sale.
func send(ctx context.Context, at rig.Addresses, p load.Plan) (figures, error) {
	if err := reset(ctx, at); err != nil {
		return figures{}, err
	}
	p.Target, p.Product, p.Qty = at.Target, product, 1
	h, err := load.Run(ctx, p, nil)
	if err != nil {
		return figures{}, err
	}
	for i := range h.Ops {
		if p.Path != "" && h.Ops[i].Status == http.StatusOK {
			h.Ops[i].Outcome = history.OK
		}
	}
	return summarise(ctx, at, h)
}

// forLength sends the requests of a plan for the length of a measurement.
func (b *bench) forLength(ctx context.Context, at rig.Addresses, p load.Plan) (figures, error) {
	p.Loops, p.Length = load.MaxRequests/p.Clients, b.length
	return send(ctx, at, p)
}

func reset(ctx context.Context, at rig.Addresses) error {
	_, err := replica(at).ResetStock(ctx, product, fullStock)
	return err
}

// summarise computes the figures of a history with the stock that is left.
func summarise(ctx context.Context, at rig.Addresses, h history.History) (figures, error) {
	left, err := replica(at).Count(ctx, h.Strategy, product)
	return figures{Result: measure.Summarise(h, measure.Setup{Plan: load.Plan{Qty: 1}, Stock: fullStock, Remaining: &left})}, err
}

func replica(at rig.Addresses) api.Client {
	return api.Client{Base: at.Replicas[0], Token: at.Token, HTTP: api.Direct()}
}
