package main

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"time"

	"oversell/lab/history"
	"oversell/lab/load"
)

// waiters compares the rates with few and with many waiting clients, through nginx. The targets are
// a ratio of 0.85 and 120 MB of memory for each replica.
func (b bench) waiters(ctx context.Context) error {
	const few, many = 100, 1000
	b.printf("## A thousand waiters\n\nThrough nginx, for %v each, in turn, %d rounds.\n\n", b.length, b.rounds)
	b.printf("| strategy | %d clients /s | %d clients /s | ratio | wanted | failed |\n|---|---:|---:|---:|---:|---:|\n", few, many)
	for _, strategy := range []string{"redis", "zk", "cohort-zk"} {
		measured, err := inTurn(b, []int{few, many}, func(clients int) (figures, error) {
			// The wait is long: the last of a thousand clients waits for a thousand sales.
			return b.viaNginx(ctx, load.Plan{Strategy: strategy, Clients: clients, Wait: time.Minute})
		})
		if err != nil {
			return fmt.Errorf("%s: %w", strategy, err)
		}
		failed := 0
		for _, f := range append(measured[few], measured[many]...) {
			failed += f.failed
		}
		b.printf("| %s | %s | %s | %.2f | 0.85 | %d |\n", strategy, ranged(measured[few], rate, 0), ranged(measured[many], rate, 0),
			median(measured[many], rate)/median(measured[few], rate), failed)
	}
	b.printf("\n")
	return b.lab.memory(ctx, b.out, 120)
}

// viaNginx resets the stock and sends a plan's requests through nginx. A plan with a Path buys
// nothing, so each of its answers counts as a sale.
func (b bench) viaNginx(ctx context.Context, p load.Plan) (figures, error) {
	if _, err := b.lab.api(b.lab.Replicas[0]).ResetStock(ctx, 1, fullStock); err != nil {
		return figures{}, err
	}
	p.Target, p.Product, p.Qty, p.Loops, p.Length = b.lab.Target, 1, 1, load.MaxRequests/p.Clients, b.length
	h, err := load.Run(ctx, p, nil)
	if err != nil {
		return figures{}, err
	}
	var sales []sale
	retries, failed := 0, 0
	for _, op := range h.Ops {
		retries += op.Retries
		if op.Outcome == history.OK || p.Path != "" && op.Status == http.StatusOK {
			sales = append(sales, sale{int64(op.Return), op.Elapsed()})
		} else {
			failed++
		}
	}
	f := figuresOf([][]sale{sales}, b.length)
	f.failed, f.each = failed, float64(retries)/math.Max(1, float64(len(sales)))
	return f, nil
}
