package main

import (
	"context"
	"fmt"
	"time"

	"oversell/lab/load"
)

// waiters measures whether waiting costs more, the more do it: few clients, then many,
// through nginx. Targets: many at 0.85 of few, and a replica under 120 MB.
func (b bench) waiters(ctx context.Context, l lab) error {
	const few, many = 100, 1000
	fmt.Fprintf(b.out, "## A thousand waiters\n\nThrough nginx, for %v each, in turn, %d rounds.\n\n", b.terms.length, b.rounds)
	fmt.Fprintf(b.out, "| strategy | %d clients /s | %d clients /s | ratio | wanted | failed |\n|---|---:|---:|---:|---:|---:|\n", few, many)
	for _, strategy := range []string{"redis", "zk"} {
		heats := map[int][]heat{}
		failed := 0
		for range b.rounds {
			for _, clients := range []int{few, many} {
				h, err := b.crowd(ctx, l, strategy, clients)
				if err != nil {
					return fmt.Errorf("%s with %d clients: %w", strategy, clients, err)
				}
				heats[clients] = append(heats[clients], h)
				failed += h.failed
			}
		}
		fmt.Fprintf(b.out, "| %s | %s | %s | %.2f | 0.85 | %d |\n", strategy, ranged(heats[few], rateOf, 0), ranged(heats[many], rateOf, 0),
			middle(heats[many], rateOf)/middle(heats[few], rateOf), failed)
	}
	fmt.Fprintln(b.out)
	return l.memory(ctx, b.out, 120)
}

// crowd is one heat of so many clients. None of them gives up: the last of a thousand
// waits for a thousand sales.
func (b bench) crowd(ctx context.Context, l lab, strategy string, clients int) (heat, error) {
	if err := l.stock(ctx, shelf); err != nil {
		return heat{}, err
	}
	h, err := load.Run(ctx, load.Plan{
		Target: l.Target, Strategy: strategy, Product: 1, Qty: 1, Clients: clients, Loops: load.MaxRequests / clients,
		Length: b.terms.length, Wait: time.Minute,
	}, nil)
	if err != nil {
		return heat{}, err
	}
	sales, _, failed := soldBy(h, false)
	got := judge([][]sale{sales}, b.terms.length)
	got.failed = failed
	return got, nil
}
