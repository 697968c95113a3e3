package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// group has locks that use the same backend. Each lock guards the SELECT and the UPDATE of one row
// in several processes, without HTTP.
type group struct {
	title string
	// backend returns how many requests the backend has received. asked is their name in the table.
	backend  func(lab, context.Context) (int64, error)
	asked    string
	ours     []string
	peers    []string
	compared []comparison
}

// comparison is a target for our lock: its least ratio to the best of the other locks.
type comparison struct {
	ours   string
	others []string
	least  float64
	p99    float64 // the highest ratio of our p99 to the best other p99; 0 means any
}

// These limits use no distributed lock: one process with a mutex, and several with no lock.
const (
	serial    = "serial limit"
	unguarded = "unguarded limit"
)

func groups() []group {
	redisPeers := []string{"redsync, 1 node", "bsm/redislock, 1 ms", "bsm/redislock, 50 ms", "rueidislock"}
	return []group{
		{
			title: "One Redis", backend: lab.redisRequests, asked: "requests",
			ours: []string{"redis", "cohort-redis"}, peers: redisPeers,
			compared: []comparison{{"redis", redisPeers, 1.0, 0.3}, {"cohort-redis", redisPeers, 1.5, 0}},
		},
		{
			title: "Five Redis", backend: lab.redlockRequests, asked: "requests",
			ours: []string{"redlock", "cohort-redlock"}, peers: []string{"redsync, 5 nodes"},
			compared: []comparison{{"redlock", []string{"redsync, 5 nodes"}, 1.2, 0}, {"cohort-redlock", []string{"redsync, 5 nodes"}, 1.5, 0}},
		},
		{
			title: "ZooKeeper", backend: lab.zooKeeperPackets, asked: "packets",
			ours: []string{"zk", "cohort-zk"}, peers: []string{"go-zookeeper Lock"},
			compared: []comparison{{"zk", []string{"go-zookeeper Lock"}, 1.2, 0}, {"cohort-zk", []string{"go-zookeeper Lock"}, 1.5, 0}},
		},
		{
			title: "etcd", backend: lab.etcdMessages, asked: "messages",
			ours: []string{"etcd"}, peers: []string{"concurrency.Mutex"},
			compared: []comparison{{"etcd", []string{"concurrency.Mutex"}, 1.0, 0}},
		},
		{title: "MySQL", backend: lab.mysqlQuestions, asked: "questions", ours: []string{"db-row", "get-lock"}},
	}
}

// locks measures all locks of all groups and writes their tables.
func (b bench) locks(ctx context.Context) error {
	all, limits := groups(), []string{serial, unguarded}
	names, backends := limits, map[string]group{}
	for _, c := range all {
		for _, name := range slices.Concat(c.ours, c.peers) {
			names, backends[name] = append(names, name), c
		}
	}
	measured, err := inTurn(b, names, func(name string) (figures, error) {
		f, err := b.lock(ctx, name, backends[name].backend)
		if err == nil && f.lost != 0 && !slices.Contains(limits, name) {
			err = fmt.Errorf("%d lost updates: the rates cannot be compared", f.lost)
		}
		return f, err
	})
	if err != nil {
		return err
	}
	b.printf("## The locks alone\n\n%d processes x %d clients, the SELECT and the UPDATE under each lock, no HTTP; %d rounds of %v in turn. Medians; in brackets the range.\n", processes, b.clientsOfProcess(), b.rounds, b.length)
	b.printf("\n| limit | sold /s | p50 ms | p99 ms | lost |\n|---|---:|---:|---:|---:|\n")
	for _, name := range limits {
		m, lost := measured[name], 0
		for _, f := range m {
			lost += f.lost
		}
		b.printf("| %s | %s | %s | %s | %d |\n", name, ranged(m, rate, 0), ranged(m, p50, 1), ranged(m, p99, 1), lost)
	}
	for _, c := range all {
		b.printf("\n| %s | sold /s | p50 ms | p99 ms | max ms | %s per grant | fairness |\n|---|---:|---:|---:|---:|---:|---:|\n", c.title, c.asked)
		for _, name := range slices.Concat(c.ours, c.peers) {
			m := measured[name]
			b.printf("| %s | %s | %s | %s | %s | %s | %s |\n", name, ranged(m, rate, 0), ranged(m, p50, 1), ranged(m, p99, 1),
				ranged(m, most, 0), ranged(m, each, 1), ranged(m, fairness, 2))
		}
	}
	b.printf("\n| ours | against the best of | times its rate | wanted | times its p99 | wanted |\n|---|---|---:|---:|---:|---:|\n")
	for _, c := range all {
		for _, v := range c.compared {
			b.compare(v, measured)
		}
	}
	b.printf("\n")
	return nil
}

func (b bench) compare(c comparison, measured map[string][]figures) {
	best := c.others[0]
	for _, other := range c.others {
		if median(measured[other], rate) > median(measured[best], rate) {
			best = other
		}
	}
	ratio := func(of func(figures) float64) float64 {
		return median(measured[c.ours], of) / median(measured[best], of)
	}
	b.printf("| %s | %s | %.2f | %.2f | %.2f | %s |\n", c.ours, strings.Join(c.others, "; "), ratio(rate), c.least, ratio(p99), orDash("%.1f or less", c.p99))
}

// clientsOfProcess returns the number of clients in each process while a lock is measured.
func (b bench) clientsOfProcess() int { return max(1, b.load.clients/processes) }

// lock measures one lock. If backend is nil, no requests are counted.
func (b bench) lock(ctx context.Context, name string, backend func(lab, context.Context) (int64, error)) (figures, error) {
	if backend == nil {
		backend = func(lab, context.Context) (int64, error) { return 0, nil }
	}
	before, err := backend(b.lab, ctx)
	if err != nil {
		return figures{}, err
	}
	n, clients := processes, b.clientsOfProcess()
	if name == serial {
		n, clients = 1, processes*clients
	}
	f, err := sellInProcesses(ctx, name, n, job{Lab: b.lab, Clients: clients, Length: b.length})
	if err != nil {
		return f, err
	}
	after, err := backend(b.lab, ctx)
	f.each = float64(after-before) / float64(max(1, f.sold))
	return f, err
}
