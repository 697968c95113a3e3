package main

import (
	"context"
	"database/sql"
	"fmt"
	"math"
	"net/http"
	"time"

	"oversell/lab/history"
	"oversell/lab/load"
)

// What is measured through nginx besides strategies.
const (
	empty  = "an empty request" // /healthz: what HTTP costs
	update = "the UPDATE alone" // of atomic, without HTTP
)

// purchases are the strategies beyond the ladder, and what they are compared with.
func purchases() (measured []string, ratios []ratio) {
	measured = []string{
		empty, update, "atomic", "combining", "redis-stock", "for-update", "buckets", "skip-locked", "reservation",
		"version-naive", "version", "version-admitted",
	}
	ratios = []ratio{
		{"atomic", update, 0.8},
		{"combining", empty, 0.6},
		{"combining", "atomic", 3},
		{"redis-stock", empty, 0.5},
		{"buckets", "for-update", 2},
		{"version-admitted", "version-naive", 5},
	}
	return measured, ratios
}

// ratio is a target: so many times the rate of the other.
type ratio struct {
	ours, other string
	wanted      float64
}

// shop measures what sells without a lock, or with less of it.
func (b bench) shop(ctx context.Context, l lab) error {
	measured, ratios := purchases()
	heats := map[string][]heat{}
	for range b.rounds {
		for _, name := range measured {
			h, err := b.purchase(ctx, l, name)
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			heats[name] = append(heats[name], h)
		}
	}
	fmt.Fprintf(b.out, "## The locks you did not need\n\n%d clients through nginx for %v each, in turn, %d rounds. Medians; in brackets the range.\n\n", b.load.clients, b.terms.length, b.rounds)
	fmt.Fprintf(b.out, "| strategy | sold /s | p50 ms | p99 ms | attempts in vain per sale | failed |\n|---|---:|---:|---:|---:|---:|\n")
	for _, name := range measured {
		hs := heats[name]
		fmt.Fprintf(b.out, "| %s | %s | %s | %s | %s | %s |\n", name, ranged(hs, rateOf, 0), ranged(hs, p50Of, 1), ranged(hs, p99Of, 1),
			ranged(hs, func(h heat) float64 { return h.each }, 1), ranged(hs, func(h heat) float64 { return float64(h.failed) }, 0))
	}
	fmt.Fprintf(b.out, "\n| | against | times its rate | wanted |\n|---|---|---:|---:|\n")
	for _, r := range ratios {
		fmt.Fprintf(b.out, "| %s | %s | %.2f | %.1f |\n", r.ours, r.other, middle(heats[r.ours], rateOf)/middle(heats[r.other], rateOf), r.wanted)
	}
	fmt.Fprintln(b.out)
	return nil
}

// purchase is one heat.
func (b bench) purchase(ctx context.Context, l lab, name string) (heat, error) {
	if name == update {
		h, err := run(ctx, l, contest{backend: lab.mysqlQuestions}, name, b.terms)
		h.each = 0 // no attempt is in vain; that was the server's questions
		return h, err
	}
	if err := l.stock(ctx, shelf); err != nil {
		return heat{}, err
	}
	p := load.Plan{Target: l.Target, Strategy: name, Product: 1, Qty: 1, Clients: b.load.clients, Loops: load.MaxRequests / b.load.clients, Length: b.terms.length, Wait: 10 * time.Second}
	if name == empty {
		p.Path = "/healthz"
	}
	h, err := load.Run(ctx, p, nil)
	if err != nil {
		return heat{}, err
	}
	sales, retries, failed := soldBy(h, name == empty)
	got := judge([][]sale{sales}, b.terms.length)
	got.failed = failed
	got.each = float64(retries) / math.Max(1, float64(len(sales)))
	if name == empty || failed > 0 { // a request whose outcome is not known may have sold
		return got, nil
	}
	left, err := l.left(ctx, name)
	if err == nil && shelf-left != len(sales) {
		err = fmt.Errorf("%d sold, %d gone from the shelf", len(sales), shelf-left)
	}
	return got, err
}

// soldBy are the sales of a run, or its answers where it bought nothing.
func soldBy(h history.History, nothing bool) (sales []sale, retries, failed int) {
	for _, op := range h.Ops {
		retries += op.Retries
		if op.Outcome == history.OK || nothing && op.Status == http.StatusOK {
			sales = append(sales, sale{int64(op.Return), op.Elapsed()})
		} else {
			failed++
		}
	}
	return sales, retries, failed
}

// updateAlone is atomic's statement on database/sql.
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
