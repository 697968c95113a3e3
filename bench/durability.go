package main

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"oversell/lab/load"
	"oversell/lab/rig"
)

// deployments are the conditions of durability.
var deployments = []deployment{
	{"memory", func(*rig.Config) {}},
	{"fsync", onDisk(0, 0)},
	{"fsync under strace", onDisk(time.Microsecond, 0)}, // what the tool costs that makes the disk slow
	{"2 ms disk", onDisk(2*time.Millisecond, 0)},
	{"2 ms disk, 1 ms network", onDisk(2*time.Millisecond, time.Millisecond)},
}

func onDisk(disk, delay time.Duration) func(*rig.Config) {
	return func(cfg *rig.Config) { cfg.Fsync, cfg.Disk, cfg.Delay, cfg.Proxied = true, disk, delay, delay > 0 }
}

// durability measures the basic strategies with servers that do not wait for the disk, that do, and with slow disks
// and links.
func (b *bench) durability(ctx context.Context) error {
	labs, names, end, err := b.deploy(ctx, deployments)
	defer end()
	if err != nil {
		return err
	}
	g, err := b.measureGrid(ctx, names, func(ctx context.Context, c candidate) (figures, error) {
		return b.forLength(ctx, labs[c.condition], load.Plan{Strategy: c.strategy, Clients: b.clients, Wait: time.Minute})
	})
	if err != nil {
		return err
	}
	g.durable()
	g.printLoad()
	return nil
}

// durable prints the tables of durability, and what they show.
func (g grid) durable() {
	g.printf("## Memory, disk and network\n\nSold a second by %d clients through nginx for %v each, in random order, %d rounds. "+
		"Medians; in brackets their 95 %% intervals.\n\n"+
		"- memory: no server waits for its disk, as in all other tables.\n"+
		"- fsync: each server syncs a write before it answers, to the disk of this machine.\n"+
		"- fsync under strace: the same, with the tool that makes the disk slow, and that adds 1 us.\n"+
		"- 2 ms disk: each sync takes 2 ms longer. 1 ms network: each answer of a server does.\n\n", g.clients, g.length, g.rounds)
	g.table("sold /s", g.timed(rate, 0))
	g.table("p99 ms", g.timed(p99, 0))
	g.table("share of its rate in memory", func(c candidate) string { return g.kept(c.strategy, c.condition) })
	g.printf("%s\n%s\n%s\n\n", g.disk(), g.tutorial(), g.turned())
}

// kept returns the share of its rate in memory that a strategy has under a condition.
func (g grid) kept(strategy, condition string) string {
	return g.against(candidate{strategy, condition}, candidate{strategy, "memory"}).Ratio.Text(2)
}

// disk says what a slow disk leaves of the rates of sales that hold a lock in the database only, or elsewhere.
func (g grid) disk() string {
	const slow = "2 ms disk"
	return fmt.Sprintf("- On the 2 ms disk, `combining` keeps %s of its rate in memory (wanted: 0.8), `atomic` %s and `for-update` %s: "+
		"InnoDB releases a row before it syncs the commit. A lock outside of the transaction is held during the sync: `redis` keeps %s, `zk` %s, `db-row` %s.",
		g.kept("combining", slow), g.kept("atomic", slow), g.kept("for-update", slow), g.kept("redis", slow), g.kept("zk", slow), g.kept("db-row", slow))
}

// tutorial says where the locks have the tutorial's order of speed.
func (g grid) tutorial() string {
	var has, lacks []string
	for _, condition := range g.conditions {
		if g.faster("redis", "zk", condition) && g.faster("zk", "db-row", condition) {
			has = append(has, condition)
		} else {
			lacks = append(lacks, condition)
		}
	}
	list := func(names []string) string { return cmp.Or(strings.Join(names, "; "), "none") }
	return fmt.Sprintf("- The tutorial's order is cache, then ZooKeeper, then database: `redis`, `zk`, `db-row`. "+
		"Columns that show it: %s. Columns that do not: %s.", list(has), list(lacks))
}

// turned names the pairs of strategies of which the first is faster in memory, and the second on a slow disk.
func (g grid) turned() string {
	var pairs []string
	for _, a := range basic {
		for _, b := range basic {
			if g.faster(a, b, "memory") && g.faster(b, a, "2 ms disk") {
				pairs = append(pairs, fmt.Sprintf("`%s` and `%s`", a, b))
			}
		}
	}
	return "- Pairs that turn around, the first faster in memory and the second on the 2 ms disk: " + cmp.Or(strings.Join(pairs, ", "), "none") + "."
}
