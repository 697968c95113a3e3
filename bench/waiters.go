package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"oversell/lab/load"
)

// waiters measures how the basic strategies bear ever more waiting clients, through nginx.
func (b *bench) waiters(ctx context.Context) error {
	const most = 10_000
	g, err := b.measureGrid(ctx, []string{"10", "100", "1000", fmt.Sprint(most)}, func(ctx context.Context, c candidate) (f figures, err error) {
		if err := b.restartReplicas(ctx); err != nil { // their memory is then that of this measurement
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
		for _, replica := range b.at.Replicas {
			if err == nil {
				var mb float64
				mb, err = resident(ctx, replica)
				f.memory = max(f.memory, mb)
			}
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
	g.table("failed requests in all", func(c candidate) string { return fmt.Sprint(sum(values(g.measured[c], failed))) })
	g.printLoad()
	return nil
}

func sum(all []float64) (total float64) {
	for _, v := range all {
		total += v
	}
	return total
}

// backendOf returns the counter of the servers that a strategy needs most: those of its lock, or MySQL without one.
func backendOf(strategy string) counter {
	switch {
	case strategy == "redlock":
		return redlockRequests
	case strings.HasPrefix(strategy, "redis"):
		return redisRequests
	case slices.Contains([]string{"zk", "cohort-zk"}, strategy):
		return zooKeeperPackets
	case strategy == "etcd":
		return etcdMessages
	}
	return mysqlQuestions
}

// restartReplicas returns when all replicas have restarted and nginx reaches them.
func (b *bench) restartReplicas(ctx context.Context) error {
	for _, s := range b.rig.Servers() {
		if !strings.HasPrefix(s.Name(), "replica-") {
			continue
		}
		if err := s.Stop(ctx); err != nil {
			return err
		}
		if err := s.Start(ctx); err != nil {
			return err
		}
	}
	return b.rig.AwaitReady(ctx)
}
