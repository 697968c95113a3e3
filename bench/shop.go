package main

import (
	"context"
	"time"

	"oversell/lab/load"
)

// These candidates are not strategies of the service.
const (
	empty  = "an empty request" // /healthz: the cost of HTTP
	update = "the UPDATE alone" // atomic without HTTP
	direct = "combining, without HTTP"
	both   = "the UPDATE alone, and an empty request" // computed: their processor times together
)

// oneRow is the best published rate of sales from one row that we know, in sales a second (AliSQL, on 90 cores).
const oneRow = 31_000

// withoutLock lists the candidates that use no lock, or hold a lock for a shorter time.
var withoutLock = []string{
	empty, update, direct, "atomic", "combining", "redis-stock", "for-update", "buckets", "skip-locked", "reservation",
	"version-naive", "version", "version-admitted",
}

// wanted lists the wanted ratios of our rate to the other rate.
var wanted = []comparison{
	{"atomic", []string{both}, 0.8, 0},
	{"combining", []string{empty}, 0.75, 0},
	{"combining", []string{"atomic"}, 3, 0},
	{"redis-stock", []string{empty}, 0.65, 0},
	{"buckets", []string{"for-update"}, 2, 0},
	{"version-admitted", []string{"version-naive"}, 5, 0},
}

// withoutLocks measures the candidates of withoutLock.
func (b *bench) withoutLocks(ctx context.Context) error {
	measured, err := inTurn(b, withoutLock, func(name string) (figures, error) { return b.purchases(ctx, name) })
	if err != nil {
		return err
	}
	b.printf("## The locks you did not need\n\n%d clients through nginx for %v each, in random order, %d rounds. "+
		"Medians; in brackets their 95 %% intervals. Ratios in the same round.\n\n", b.clients, b.length, b.rounds)
	b.table("strategy", withoutLock, measured, median("sold /s", rate, 0), median("p50 ms", p50, 1), median("p99 ms", p99, 1),
		median("failed attempts per sale", retries, 1), median("failed", failed, 0))
	for i, f := range measured[update] {
		f.Sold, f.DurationS = 1, 1/rate(f)+1/rate(measured[empty][i])
		measured[both] = append(measured[both], f)
	}
	b.printf("Wanted without HTTP: %d sales /s, the best published rate for one row that we know.\n\n", oneRow)
	b.compare(wanted, measured)
	return nil
}

func (b *bench) purchases(ctx context.Context, name string) (figures, error) {
	switch name {
	case update, direct:
		return exact(b.withoutHTTP(ctx, name, nil))
	case empty:
		return b.forLength(ctx, b.at, load.Plan{Strategy: "none", Path: "/healthz", Clients: b.clients})
	}
	f, err := b.forLength(ctx, b.at, load.Plan{Strategy: name, Clients: b.clients, Wait: 10 * time.Second})
	if err == nil && f.Errors == 0 { // after a failed request, the stock need not match
		return exact(f, nil)
	}
	return f, err
}
