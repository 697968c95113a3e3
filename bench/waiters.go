package main

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"oversell/lab/load"
	"oversell/lab/rig"
)

// waiters measures how the basic strategies bear ever more waiting clients, through nginx.
func (b *bench) waiters(ctx context.Context) error {
	g, err := b.measureGrid(ctx, []string{"10", "100", "1000"}, func(ctx context.Context, c candidate) (f figures, err error) {
		if err := b.rig.RollingRestart(ctx, func(*rig.Server) {}); err != nil { // their memory is then that of this measurement
			return f, err
		}
		clients, err := strconv.Atoi(c.condition)
		if err != nil {
			return f, err
		}
		f, err = perGrant(ctx, b.at, backendOf(c.strategy), func() (figures, error) {
			return b.forLength(ctx, b.at, load.Plan{Strategy: c.strategy, Clients: clients, Wait: time.Minute})
		})
		if err == nil {
			f.memory, err = b.memory()
		}
		return f, err
	})
	if err != nil {
		return err
	}
	b.printf("## Ten to a thousand waiters\n\nThrough nginx, by the number of clients, all of which wait at the same time; no client "+
		"begins a request after %v. Random order, %d rounds. Medians; in brackets their 95 %% intervals.\n\n", b.length, b.rounds)
	g.table("sold /s", g.timed(rate, 0))
	g.table("p99 ms", g.timed(p99, 0))
	g.table("MB resident of the largest replica", g.ranged(memory, 0))
	g.table("requests to its backend per sale", g.ranged(each, 1))
	g.table("failed requests in all", func(c candidate) string {
		total := 0
		for _, f := range g.measured[c] {
			total += f.Errors
		}
		return fmt.Sprint(total)
	})
	g.printLoad()
	return nil
}
