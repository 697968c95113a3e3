package main

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/lab/backend"
	"oversell/lab/load"
	"oversell/lab/rig"
)

// waiting lists the numbers of clients that wait at the same time.
var waiting = []int{10, 100, 1000}

// counted lists the strategies for which questions counts requests to the backend. In the first
// row, a release notifies waiters. In the second, waiters poll or all wake up.
var counted = []string{
	"redis", "redis-fair", "zk",
	"redis-setnx", "zk-ephemeral", "zk-ephemeral-watch", "zk-sequential",
}

// questions prints how many requests the lock's backend receives for each grant.
func (b *bench) questions(ctx context.Context) error {
	const sales = 200 // at least: the first requests of a replica also open connections
	b.printf("## What a grant costs\n\nRequests to the lock's backend for each grant, through nginx, " +
		"by the number of waiting clients.\n\n| strategy |")
	for _, n := range waiting {
		b.printf(" %d |", n)
	}
	b.printf("\n|---|---:|---:|---:|\n")
	for _, strategy := range counted {
		requests := counter(zooKeeperPackets)
		if strings.HasPrefix(strategy, "redis") {
			requests = redisRequests
		}
		b.printf("| %s |", strategy)
		for _, n := range waiting {
			// A client that polls may not get the lock within the wait: then its request fails.
			f, err := perGrant(ctx, b.at, requests, func() (figures, error) {
				return send(ctx, b.at, load.Plan{Strategy: strategy, Clients: n, Loops: max(2, sales/n), Wait: 30 * time.Second})
			})
			if err != nil {
				return fmt.Errorf("%s with %d waiters: %w", strategy, n, err)
			}
			b.printf(" %.1f |", f.each)
		}
		b.printf("\n")
	}
	b.printf("\n")
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

// reads matches the number of reads from sockets in Redis's statistics. Redis reads once for each
// command that is neither in a pipeline nor in a script. Its number of commands would also count those
// inside scripts.
var reads = regexp.MustCompile(`total_reads_processed:(\d+)`)

func redisRequests(ctx context.Context, at rig.Addresses) (int64, error) {
	return readsOf(ctx, at.Redis[:1])
}

func redlockRequests(ctx context.Context, at rig.Addresses) (int64, error) {
	return readsOf(ctx, at.Redis)
}

func readsOf(ctx context.Context, urls []string) (sum int64, err error) {
	for _, url := range urls {
		options, err := redis.ParseURL(url)
		if err != nil {
			return 0, err
		}
		client := redis.NewClient(options)
		text, err := client.Info(ctx, "stats").Result()
		_ = client.Close()
		found := reads.FindStringSubmatch(text)
		if err != nil || found == nil {
			return 0, fmt.Errorf("redis at %s has no number of reads: %w", options.Addr, err)
		}
		n, err := strconv.ParseInt(found[1], 10, 64)
		if err != nil {
			return 0, err
		}
		sum += n
	}
	return sum, nil
}

// mysqlQuestions counts all statements that MySQL has received, including those for the stock.
func mysqlQuestions(ctx context.Context, at rig.Addresses) (int64, error) {
	return backend.MySQLQuestions(ctx, at.MySQL)
}

func etcdMessages(ctx context.Context, at rig.Addresses) (int64, error) {
	return backend.EtcdMessages(ctx, at.Etcd[0])
}

func zooKeeperPackets(ctx context.Context, at rig.Addresses) (int64, error) {
	return backend.ZooKeeperPackets(ctx, at.Zookeeper[0])
}
