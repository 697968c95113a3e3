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
	const most = 10_000
	g, err := b.measureGrid(ctx, []string{"10", "100", "1000", fmt.Sprint(most)}, func(ctx context.Context, c candidate) (f figures, err error) {
		if err := b.rig.RollingRestart(ctx, func(*rig.Server) {}); err != nil { // their memory is then that of this measurement
			return f, err
		}
		clients, err := strconv.Atoi(c.condition)
		if err != nil {
			return f, err
		}
		f, err = perGrant(ctx, b.at, backendOf(c.strategy), func() (figures, error) {
			// The wait is long: the last of ten thousand clients waits for ten thousand sales. All of them
			// would not begin within the length of a measurement.
			p := load.Plan{Strategy: c.strategy, Clients: clients, Wait: time.Minute}
			if clients == most {
				p.Loops = 1
				return send(ctx, b.at, p)
			}
			return b.forLength(ctx, b.at, p)
		})
		if err == nil {
			f.memory, err = b.memory()
		}
		return f, err
	})
	if err != nil {
		return err
	}
	b.printf("## Ten to ten thousand waiters\n\nThrough nginx, by the number of clients, all of which wait at the same time; no client "+
		"begins a request after %v, and each of %d sends one. Random order, %d rounds. Medians; in brackets their 95 %% intervals.\n\n", b.length, most, b.rounds)
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
