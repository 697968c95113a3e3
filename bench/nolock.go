package main

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"oversell/lab/load"
)

// These candidates are not strategies of the service.
const (
	empty  = "an empty request" // /healthz: the cost of HTTP
	update = "the UPDATE alone" // the statement of atomic, without HTTP
)

// withoutLock lists the candidates that use no lock, or hold a lock for a shorter time.
var withoutLock = []string{
	empty, update, "atomic", "combining", "redis-stock", "for-update", "buckets", "skip-locked", "reservation",
	"version-naive", "version", "version-admitted",
}

// ratios lists the wanted ratios of our rate to the other rate.
var ratios = []struct {
	ours, other string
	wanted      float64
}{
	{"atomic", update, 0.8},
	{"combining", empty, 0.6},
	{"combining", "atomic", 3},
	{"redis-stock", empty, 0.5},
	{"buckets", "for-update", 2},
	{"version-admitted", "version-naive", 5},
}

// withoutLocks measures the candidates of withoutLock.
func (b bench) withoutLocks(ctx context.Context) error {
	measured, err := inTurn(b, withoutLock, func(name string) (figures, error) { return b.purchases(ctx, name) })
	if err != nil {
		return err
	}
	b.printf("## The locks you did not need\n\n%d clients through nginx for %v each, in turn, %d rounds. Medians; in brackets the range.\n\n", b.load.clients, b.length, b.rounds)
	b.printf("| strategy | sold /s | p50 ms | p99 ms | failed attempts per sale | failed |\n|---|---:|---:|---:|---:|---:|\n")
	for _, name := range withoutLock {
		m := measured[name]
		b.printf("| %s | %s | %s | %s | %s | %s |\n", name, ranged(m, rate, 0), ranged(m, p50, 1), ranged(m, p99, 1),
			ranged(m, each, 1), ranged(m, func(f figures) float64 { return float64(f.failed) }, 0))
	}
	b.printf("\n| | against | times its rate | wanted |\n|---|---|---:|---:|\n")
	for _, r := range ratios {
		b.printf("| %s | %s | %.2f | %.1f |\n", r.ours, r.other, median(measured[r.ours], rate)/median(measured[r.other], rate), r.wanted)
	}
	b.printf("\n")
	return nil
}

func (b bench) purchases(ctx context.Context, name string) (figures, error) {
	if name == update {
		return b.lock(ctx, name, nil)
	}
	p := load.Plan{Strategy: name, Clients: b.load.clients, Wait: 10 * time.Second}
	if name == empty {
		p.Path = "/healthz"
	}
	f, err := b.viaNginx(ctx, p)
	if err != nil || name == empty || f.failed > 0 { // the stock need not match
		return f, err
	}
	left, err := b.lab.api(b.lab.Replicas[0]).Count(ctx, name, 1)
	if err == nil && fullStock-left != f.sold {
		err = fmt.Errorf("%d sold, but %d taken from stock", f.sold, fullStock-left)
	}
	return f, err
}

// updateAlone runs only the UPDATE statement of the strategy atomic, on database/sql.
func updateAlone(_ context.Context, l lab) (deduct, func(), error) {
	return with(l, func(ctx context.Context, db *sql.DB) error {
		done, err := db.ExecContext(ctx, "UPDATE db_stock SET count = LAST_INSERT_ID(count - ?) WHERE id = ? AND count >= ?", 1, 1, 1)
		if err != nil {
			return err
		}
		if n, err := done.RowsAffected(); err != nil || n != 1 {
			return fmt.Errorf("%d rows: %w", n, err)
		}
		return nil
	}, func() {})
}
