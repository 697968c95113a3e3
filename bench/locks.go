package main

import (
	"context"
	"slices"
)

// group has locks that use the same backend. Each lock guards the SELECT and the UPDATE of one row
// in several instances, without HTTP.
type group struct {
	title    string
	asked    string   // what its requests are called
	ours     []string // IDs of strategies
	peers    []string // other libraries; see peers
	compared []comparison
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
			title: "One Redis", asked: "requests",
			ours: []string{"redis", "cohort-redis"}, peers: append(redis, "redis"+byAdapter, "Redisson"+byAdapter),
			compared: []comparison{{"redis", redis, 1.0, 0.3}, {"cohort-redis", redis, 1.5, 0}, {"redis" + byAdapter, []string{"Redisson" + byAdapter}, 1.0, 0}},
		},
		{
			title: "Five Redis", asked: "requests",
			ours: []string{"redlock", "cohort-redlock"}, peers: masters,
			compared: []comparison{{"redlock", masters, 1.2, 0}, {"cohort-redlock", masters, 1.5, 0}},
		},
		{
			title: "ZooKeeper", asked: "packets",
			ours: []string{"zk", "cohort-zk"}, peers: append(zk, "zk"+byAdapter, "Curator"+byAdapter),
			compared: []comparison{{"zk", zk, 1.2, 0}, {"cohort-zk", zk, 1.5, 0}, {"zk" + byAdapter, []string{"Curator" + byAdapter}, 1.0, 0}},
		},
		{
			title: "etcd", asked: "messages",
			ours: []string{"etcd"}, peers: []string{"concurrency.Mutex"},
			compared: []comparison{{"etcd", []string{"concurrency.Mutex"}, 1.0, 0}},
		},
		{title: "MySQL", asked: "questions", ours: []string{"db-row", "get-lock"}},
	}
}

// locks measures all locks of all groups and writes their tables.
func (b *bench) locks(ctx context.Context) error {
	all, limits := groups(), []string{serial, unguarded}
	names, backends := limits, map[string]counter{}
	for _, g := range all {
		for _, name := range slices.Concat(g.ours, g.peers) {
			names, backends[name] = append(names, name), backendOf(g.ours[0])
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
		"%d rounds of %v, in random order. Medians; in brackets their 95 %% intervals.\n\n", instances, b.clients, b.rounds, b.length)
	b.table("limit", limits, measured, median("sold /s", rate, 0), median("p50 ms", p50, 1), median("p99 ms", p99, 1), median("lost", lost, 0))
	var compared []comparison
	for _, g := range all {
		b.table(g.title, slices.Concat(g.ours, g.peers), measured, median("sold /s", rate, 0), median("p50 ms", p50, 1), median("p99 ms", p99, 1),
			median("max ms", most, 0), median(g.asked+" per grant", each, 1), median("fairness", fairness, 2))
		compared = append(compared, g.compared...)
	}
	b.compare(compared, measured)
	return nil
}
