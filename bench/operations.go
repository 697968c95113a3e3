package main

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"oversell/lab/backend"
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
func (b bench) questions(ctx context.Context) error {
	b.printf("## What a grant costs\n\nRequests to the lock's backend for each grant, through nginx, by the number of waiting clients.\n\n| strategy |")
	for _, n := range waiting {
		b.printf(" %d |", n)
	}
	b.printf("\n|---|---:|---:|---:|\n")
	for _, strategy := range counted {
		b.printf("| %s |", strategy)
		for _, n := range waiting {
			each, err := b.lab.perGrant(ctx, strategy, n)
			if err != nil {
				return fmt.Errorf("%s with %d waiters: %w", strategy, n, err)
			}
			b.printf(" %.1f |", each)
		}
		b.printf("\n")
	}
	b.printf("\n")
	return nil
}

// perGrant counts the backend's requests for each grant, while each client buys twice.
func (l lab) perGrant(ctx context.Context, strategy string, clients int) (float64, error) {
	count := l.zooKeeperPackets
	switch {
	case strategy == "redis-setnx":
		count = func(ctx context.Context) (int64, error) { return l.redisCommands(ctx, "setnx", "set", "del") }
	case strings.HasPrefix(strategy, "redis"):
		count = func(ctx context.Context) (int64, error) {
			return l.redisCommands(ctx, "evalsha", "eval", "subscribe", "unsubscribe")
		}
	}
	before, err := count(ctx)
	if err != nil {
		return 0, err
	}
	// A client that polls may not get the lock within the wait. run reports that as an error.
	f, failed := l.run(ctx, strategy, volume{clients, 2}, "--wait", "30s")
	if f.sold == 0 {
		return 0, fmt.Errorf("nothing was sold: %w", failed)
	}
	after, err := count(ctx)
	return float64(after-before) / float64(f.sold), err
}

var commandStat = regexp.MustCompile(`cmdstat_(\S+?):calls=(\d+)`)

// redisCommands counts the commands that a strategy's clients send. Redis's own total would also
// count the commands inside scripts.
func (l lab) redisCommands(ctx context.Context, names ...string) (sum int64, err error) {
	return total(ctx, l.Redis[:1], "commandstats", commandStat, func(name string) bool { return slices.Contains(names, name) })
}

// reads matches the number of reads from sockets in Redis's statistics. Redis reads once for each
// command that is neither in a pipeline nor in a script.
var reads = regexp.MustCompile(`(total_reads_processed):(\d+)`)

func (l lab) redisRequests(ctx context.Context) (int64, error) {
	return total(ctx, l.Redis[:1], "stats", reads, nil)
}

func (l lab) redlockRequests(ctx context.Context) (int64, error) {
	return total(ctx, l.Redis, "stats", reads, nil)
}

// total adds the numbers that a pattern finds in the INFO of each Redis. If counts is nil, it adds
// the numbers of all names.
func total(ctx context.Context, urls []string, section string, pattern *regexp.Regexp, counts func(name string) bool) (sum int64, err error) {
	err = info(ctx, urls, section, pattern, func(name, value string) {
		if n, bad := strconv.ParseInt(value, 10, 64); bad == nil && (counts == nil || counts(name)) {
			sum += n
		}
	})
	return sum, err
}

// info calls found for each name and value that the pattern finds in the INFO of each Redis.
func info(ctx context.Context, urls []string, section string, pattern *regexp.Regexp, found func(name, value string)) error {
	clients, err := dial(urls)
	defer hangUp(clients)
	if err != nil {
		return err
	}
	for _, client := range clients {
		text, err := client.Info(ctx, section).Result()
		if err != nil {
			return err
		}
		for _, m := range pattern.FindAllStringSubmatch(text, -1) {
			found(m[1], m[2])
		}
	}
	return nil
}

// mysqlQuestions counts all statements that MySQL has received, including those for the stock.
func (l lab) mysqlQuestions(ctx context.Context) (int64, error) {
	return backend.MySQLQuestions(ctx, l.MySQL)
}

func (l lab) etcdMessages(ctx context.Context) (int64, error) {
	return backend.EtcdMessages(ctx, l.Etcd[0])
}

func (l lab) zooKeeperPackets(ctx context.Context) (int64, error) {
	return backend.ZooKeeperPackets(ctx, l.ZooKeeper[0])
}
