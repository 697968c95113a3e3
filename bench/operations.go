package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"oversell/lab/backend"
)

// crowds is how many wait at the same time.
var crowds = []int{10, 100, 1000}

// costly are the strategies whose questions to their backend are counted: those
// that are told when it is their turn, and then those that ask for it.
var costly = []string{
	"redis", "redis-fair", "zk",
	"redis-setnx", "zk-ephemeral", "zk-ephemeral-watch", "zk-sequential",
}

// operations prints what one grant costs the lock's backend, as it counts itself.
func operations(ctx context.Context, l lab, out io.Writer) error {
	fmt.Fprint(out, "## What a grant costs\n\nQuestions to the lock's backend for each grant, through nginx, with so many waiters.\n\n| strategy |")
	for _, n := range crowds {
		fmt.Fprintf(out, " %d |", n)
	}
	fmt.Fprintln(out, "\n|---|---:|---:|---:|")
	for _, strategy := range costly {
		fmt.Fprintf(out, "| %s |", strategy)
		for _, n := range crowds {
			each, err := l.perGrant(ctx, strategy, n)
			if err != nil {
				return fmt.Errorf("%s with %d waiters: %w", strategy, n, err)
			}
			fmt.Fprintf(out, " %.1f |", each)
		}
		fmt.Fprintln(out)
	}
	fmt.Fprintln(out)
	return nil
}

// perGrant has so many clients buy twice each, and counts. Those who poll may not
// all get their turn within the wait.
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
	file := filepath.Join(l.dir, "operations.json")
	const loops = 2
	run := exec.CommandContext(ctx, l.binary, "run", strategy, "--quiet", "--target", l.Target, "--json", file, "--wait", "30s",
		"--clients", strconv.Itoa(clients), "--loops", strconv.Itoa(loops), "--stock", strconv.Itoa(clients*loops))
	run.Env = append(os.Environ(), "LAB_TOKEN="+l.Token)
	out, failed := run.CombinedOutput() // a poller that had bad luck for 30 s is an error
	after, err := count(ctx)
	if err != nil {
		return 0, err
	}
	var results []struct {
		Sold int `json:"sold"`
	}
	if err := readJSON(file, &results); err != nil || len(results) != 1 || results[0].Sold == 0 {
		return 0, fmt.Errorf("nothing was sold (%w, %w): %s", failed, err, out)
	}
	return float64(after-before) / float64(results[0].Sold), nil
}

var commandStat = regexp.MustCompile(`cmdstat_(\S+?):calls=(\d+)`)

// redisCommands counts those that a strategy's clients send: Redis's own figure
// has the commands inside a script as well.
func (l lab) redisCommands(ctx context.Context, names ...string) (sum int64, err error) {
	err = info(ctx, l.Redis[:1], "commandstats", commandStat, func(name string, n int64) {
		if slices.Contains(names, name) {
			sum += n
		}
	})
	return sum, err
}

// requests are what Redis has read from its sockets, once for each command that is not
// in a pipeline or a script.
var requests = regexp.MustCompile(`(total_reads_processed):(\d+)`)

// redisRequests are those to the one Redis, redlockRequests those to all.
func (l lab) redisRequests(ctx context.Context) (sum int64, err error) {
	err = info(ctx, l.Redis[:1], "stats", requests, func(_ string, n int64) { sum += n })
	return sum, err
}

func (l lab) redlockRequests(ctx context.Context) (sum int64, err error) {
	err = info(ctx, l.Redis, "stats", requests, func(_ string, n int64) { sum += n })
	return sum, err
}

// info finds names and numbers in what each Redis says of itself.
func info(ctx context.Context, urls []string, section string, line *regexp.Regexp, found func(name string, n int64)) error {
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
		for _, m := range line.FindAllStringSubmatch(text, -1) {
			if n, err := strconv.ParseInt(m[2], 10, 64); err == nil {
				found(m[1], n)
			}
		}
	}
	return nil
}

// mysqlQuestions are the statements, the stock's own included.
func (l lab) mysqlQuestions(ctx context.Context) (int64, error) {
	return backend.MySQLQuestions(ctx, l.MySQL)
}

func (l lab) etcdMessages(ctx context.Context) (int64, error) {
	return backend.EtcdMessages(ctx, l.Etcd[0])
}

func (l lab) zooKeeperPackets(ctx context.Context) (int64, error) {
	return backend.ZooKeeperPackets(ctx, l.ZooKeeper[0])
}
