package main

import (
	"context"
	"fmt"
	"time"

	"oversell/lab/load"
)

// waiters compares the rates with few and with many waiting clients, through nginx. The targets are
// a ratio of 0.85 and 120 MB of memory for each replica.
func (b *bench) waiters(ctx context.Context) error {
	const few, many = 100, 1000
	b.printf("## A thousand waiters\n\nThrough nginx, for %v each, in random order, %d rounds.\n\n", b.length, b.rounds)
	b.printf("| strategy | %d clients /s | %d clients /s | ratio | wanted | failed |\n"+
		"|---|---:|---:|---:|---:|---:|\n", few, many)
	for _, strategy := range []string{"redis", "zk", "cohort-zk"} {
		measured, err := inTurn(b, []int{few, many}, func(clients int) (figures, error) {
			// The wait is long: the last of a thousand clients waits for a thousand sales.
			return b.forLength(ctx, b.at, load.Plan{Strategy: strategy, Clients: clients, Wait: time.Minute})
		})
		if err != nil {
			return fmt.Errorf("%s: %w", strategy, err)
		}
		errors := 0
		for _, f := range append(measured[few], measured[many]...) {
			errors += f.Errors
		}
		b.printf("| %s | %s | %s | %s | 0.85 | %d |\n", strategy, ranged(measured[few], rate, 0),
			ranged(measured[many], rate, 0), times(measured[many], measured[few], rate), errors)
	}
	b.printf("\n")
	return b.memory(ctx, 120)
}
