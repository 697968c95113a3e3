package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"oversell/lab/backend"
	"oversell/lab/load"
	"oversell/lab/rig"
)

// counted lists the strategies for which questions counts requests to the backend. In the first
// row, a release notifies waiters. In the second, waiters poll or all wake up.
var counted = []string{
	"redis", "redis-fair", "zk",
	"redis-setnx", "zk-ephemeral", "zk-ephemeral-watch", "zk-sequential",
}

// questions prints how many requests the lock's backend receives for each grant.
func (b *bench) questions(ctx context.Context) error {
	const sales = 200 // at least: the first requests of a replica also open connections
	b.printf("## What a grant costs\n\nRequests to the lock's backend for each grant, through nginx, by the number of waiting clients.\n\n")
	rows := [][]string{{"strategy", "10", "100", "1000"}}
	for _, strategy := range counted {
		row := []string{strategy}
		for _, n := range []int{10, 100, 1000} {
			// A client that polls may not get the lock within the wait: then its request fails.
			f, err := perGrant(ctx, b.at, backendOf(strategy), func() (figures, error) {
				return send(ctx, b.at, load.Plan{Strategy: strategy, Clients: n, Loops: max(2, sales/n), Wait: 30 * time.Second})
			})
			if err != nil {
				return fmt.Errorf("%s with %d waiters: %w", strategy, n, err)
			}
			row = append(row, fmt.Sprintf("%.1f", f.each))
		}
		rows = append(rows, row)
	}
	b.rows(rows)
	return nil
}

// counter returns how many requests the servers of a lab have received.
type counter func(context.Context, rig.Addresses) (int64, error)

// perGrant measures, and counts the requests to the backend for each sale.
func perGrant(
	ctx context.Context, at rig.Addresses, requests counter, measure func() (figures, error),
) (f figures, err error) {
	before, err := requests(ctx, at)
	if err != nil {
		return f, err
	}
	f, err = measure()
	if err != nil {
		return f, err
	}
	after, err := requests(ctx, at)
	f.each = float64(after-before) / float64(max(1, f.Sold))
	return f, err
}

// count adds the requests of some servers. Redis's reads are counted: it reads once for each command that is neither in
// a pipeline nor in a script. Its number of commands would also count those inside scripts.
func count(requests func(context.Context, string) (int64, error), servers func(rig.Addresses) []string) counter {
	return func(ctx context.Context, at rig.Addresses) (sum int64, err error) {
		for _, server := range servers(at) {
			n, err := requests(ctx, server)
			if err != nil {
				return 0, err
			}
			sum += n
		}
		return sum, nil
	}
}

// backendOf returns the counter of the servers that a strategy needs most: those of its lock, or MySQL without one. All
// statements that MySQL receives are counted, including those for the stock.
func backendOf(strategy string) counter {
	strategy = strings.TrimPrefix(strategy, "cohort-")
	switch {
	case strategy == "redlock":
		return count(backend.RedisReads, func(at rig.Addresses) []string { return at.Redis })
	case strings.HasPrefix(strategy, "redis"):
		return count(backend.RedisReads, func(at rig.Addresses) []string { return at.Redis[:1] })
	case strings.HasPrefix(strategy, "zk"):
		return count(backend.ZooKeeperPackets, func(at rig.Addresses) []string { return at.Zookeeper })
	case strategy == "etcd":
		return count(backend.EtcdMessages, func(at rig.Addresses) []string { return at.Etcd })
	}
	return count(backend.MySQLQuestions, func(at rig.Addresses) []string { return []string{at.MySQL} })
}
