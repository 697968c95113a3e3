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

// ratios lists the wanted ratios of our rate to the other rate.
var ratios = []struct {
	ours, other string
	wanted      float64
}{
	{"atomic", both, 0.8},
	{"combining", empty, 0.75},
	{"combining", "atomic", 3},
	{"redis-stock", empty, 0.65},
	{"buckets", "for-update", 2},
	{"version-admitted", "version-naive", 5},
}

// withoutLocks measures the candidates of withoutLock.
func (b *bench) withoutLocks(ctx context.Context) error {
	measured, err := inTurn(b, withoutLock, func(name string) (figures, error) { return b.purchases(ctx, name) })
	if err != nil {
		return err
	}
	b.printf("## The locks you did not need\n\n%d clients through nginx for %v each, in random order, %d rounds. "+
		"Medians; in brackets their 95 %% intervals. Ratios in the same round.\n\n", b.clients, b.length, b.rounds)
	b.printf("| strategy | sold /s | p50 ms | p99 ms | failed attempts per sale | failed |\n" +
		"|---|---:|---:|---:|---:|---:|\n")
	for _, name := range withoutLock {
		m := measured[name]
		b.printf("| %s | %s | %s | %s | %s | %s |\n", name, ranged(m, rate, 0), ranged(m, p50, 1), ranged(m, p99, 1),
			ranged(m, retries, 1), ranged(m, failed, 0))
	}
	for i, f := range measured[update] {
		f.Sold, f.DurationS = 1, 1/rate(f)+1/rate(measured[empty][i])
		measured[both] = append(measured[both], f)
	}
	b.printf("\nWanted without HTTP: %d sales /s, the best published rate for one row that we know.\n"+
		"\n| | against | times its rate | wanted |\n|---|---|---:|---:|\n", oneRow)
	for _, r := range ratios {
		b.printf("| %s | %s | %s | %.2f |\n", r.ours, r.other, times(measured[r.ours], measured[r.other], rate), r.wanted)
	}
	b.printf("\n")
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
