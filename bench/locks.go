package main

import (
	"context"
	"slices"
)

// group has locks that use the same backend. Each lock guards the SELECT and the UPDATE of one row
// in several instances, without HTTP.
type group struct {
	title string
	// requests returns how many requests the backend has received. asked is their name in the table.
	requests counter
	asked    string
	ours     []string // IDs of strategies
	peers    []string // other libraries; see peers
	compared []comparison
}

// comparison is a target for our lock: its least ratio to each of the other locks.
type comparison struct {
	ours   string
	others []string
	least  float64
	p99    float64 // the highest ratio of our p99 to that of another one; 0 means any
}

// These limits use no distributed lock: one instance with a mutex, and several with no lock.
const (
	serial    = "serial limit"
	unguarded = "unguarded limit"
)

func groups() []group {
	redis := []string{"redsync, 1 node", "bsm/redislock, 1 ms", "bsm/redislock, 50 ms", "rueidislock"}
	masters, zk := []string{"redsync, 5 nodes"}, []string{"go-zookeeper Lock"}
	return []group{
		{
			title: "One Redis", requests: redisRequests, asked: "requests",
			ours: []string{"redis", "cohort-redis"}, peers: append(redis, "redis"+byAdapter, "Redisson"+byAdapter),
			compared: []comparison{{"redis", redis, 1.0, 0.3}, {"cohort-redis", redis, 1.5, 0}, {"redis" + byAdapter, []string{"Redisson" + byAdapter}, 1.0, 0}},
		},
		{
			title: "Five Redis", requests: redlockRequests, asked: "requests",
			ours: []string{"redlock", "cohort-redlock"}, peers: masters,
			compared: []comparison{{"redlock", masters, 1.2, 0}, {"cohort-redlock", masters, 1.5, 0}},
		},
		{
			title: "ZooKeeper", requests: zooKeeperPackets, asked: "packets",
			ours: []string{"zk", "cohort-zk"}, peers: append(zk, "zk"+byAdapter, "Curator"+byAdapter),
			compared: []comparison{{"zk", zk, 1.2, 0}, {"cohort-zk", zk, 1.5, 0}, {"zk" + byAdapter, []string{"Curator" + byAdapter}, 1.0, 0}},
		},
		{
			title: "etcd", requests: etcdMessages, asked: "messages",
			ours: []string{"etcd"}, peers: []string{"concurrency.Mutex"},
			compared: []comparison{{"etcd", []string{"concurrency.Mutex"}, 1.0, 0}},
		},
		{title: "MySQL", requests: mysqlQuestions, asked: "questions", ours: []string{"db-row", "get-lock"}},
	}
}

// locks measures all locks of all groups and writes their tables.
func (b *bench) locks(ctx context.Context) error {
	all, limits := groups(), []string{serial, unguarded}
	names, backends := limits, map[string]counter{}
	for _, c := range all {
		for _, name := range slices.Concat(c.ours, c.peers) {
			names, backends[name] = append(names, name), c.requests
		}
	}
	measured, err := inTurn(b, names, func(name string) (figures, error) {
		f, err := b.withoutHTTP(ctx, name, backends[name])
		if slices.Contains(limits, name) {
			return f, err
		}
		return exact(f, err)
	})
	if err != nil {
		return err
	}
	b.printf("## The locks alone\n\n%d instances, %d clients, the SELECT and the UPDATE under each lock, no HTTP; "+
		"%d rounds of %v, in random order. Medians; in brackets their 95 %% intervals.\n", replicas, b.clients, b.rounds, b.length)
	b.limits(limits, measured)
	for _, c := range all {
		b.group(c, measured)
	}
	b.printf("\nRatios in the same round; ~ means that no difference is shown.\n\n" +
		"| ours | against | times its rate | wanted | times its p99 | wanted |\n|---|---|---:|---:|---:|---:|\n")
	for _, c := range all {
		for _, v := range c.compared {
			b.compare(v, measured)
		}
	}
	b.printf("\n")
	return nil
}

func (b *bench) limits(names []string, measured map[string][]figures) {
	b.printf("\n| limit | sold /s | p50 ms | p99 ms | lost |\n|---|---:|---:|---:|---:|\n")
	for _, name := range names {
		m, lost := measured[name], 0
		for _, f := range m {
			lost += f.LostUpdates
		}
		b.printf("| %s | %s | %s | %s | %d |\n", name, ranged(m, rate, 0), ranged(m, p50, 1), ranged(m, p99, 1), lost)
	}
}

func (b *bench) group(g group, measured map[string][]figures) {
	b.printf("\n| %s | sold /s | p50 ms | p99 ms | max ms | %s per grant | fairness |\n"+
		"|---|---:|---:|---:|---:|---:|---:|\n", g.title, g.asked)
	for _, name := range slices.Concat(g.ours, g.peers) {
		m := measured[name]
		b.printf("| %s | %s | %s | %s | %s | %s | %s |\n", name, ranged(m, rate, 0), ranged(m, p50, 1), ranged(m, p99, 1),
			ranged(m, most, 0), ranged(m, each, 1), ranged(m, fairness, 2))
	}
}

func (b *bench) compare(c comparison, measured map[string][]figures) {
	for _, other := range c.others {
		b.printf("| %s | %s | %s | %.2f | %s | %s |\n", c.ours, other, times(measured[c.ours], measured[other], rate), c.least,
			times(measured[c.ours], measured[other], p99), orDash("%.1f or less", c.p99))
	}
}
