package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"
)

// A contest is between locks for the same critical section: the SELECT and the UPDATE of
// one row, from processes x clients, with no HTTP between. Every lock has its turn in
// every round, so that what else the machine does hits all of them alike.
type contest struct {
	title string
	// backend counts the questions it was asked, and names them in the table.
	backend  func(lab, context.Context) (int64, error)
	asked    string
	ours     []string
	peers    []string
	compared []comparison
}

// comparison is a target: ours at so many times the best of the others.
type comparison struct {
	ours   string
	others []string
	least  float64
	p99    float64 // ours at most so many times theirs; 0: not compared
}

// limits are no locks: what one process with a mutex sells, and three with nothing.
const (
	serial    = "serial limit"
	unguarded = "unguarded limit"
)

func contests() []contest {
	redisPeers := []string{"redsync, 1 node", "bsm/redislock, 1 ms", "bsm/redislock, 50 ms", "rueidislock"}
	return []contest{
		{
			title: "One Redis", backend: lab.redisRequests, asked: "requests",
			ours: []string{"redis", "cohort-redis"}, peers: redisPeers,
			compared: []comparison{{"redis", redisPeers, 1.0, 0.3}, {"cohort-redis", redisPeers, 1.5, 0}},
		},
		{
			title: "Five Redis", backend: lab.redlockRequests, asked: "requests",
			ours: []string{"redlock", "cohort-redlock"}, peers: []string{"redsync, 5 nodes"},
			compared: []comparison{{"redlock", []string{"redsync, 5 nodes"}, 1.2, 0}, {"cohort-redlock", []string{serial}, 0.85, 0}},
		},
		{
			title: "ZooKeeper", backend: lab.zooKeeperPackets, asked: "packets",
			ours: []string{"zk", "cohort-zk"}, peers: []string{"go-zookeeper Lock"},
			compared: []comparison{{"zk", []string{"go-zookeeper Lock"}, 1.5, 0}, {"cohort-zk", []string{serial}, 0.85, 0}},
		},
		{
			title: "etcd", backend: lab.etcdMessages, asked: "messages",
			ours: []string{"etcd"}, peers: []string{"concurrency.Mutex"},
			compared: []comparison{{"etcd", []string{"concurrency.Mutex"}, 1.0, 0}},
		},
		{title: "MySQL", backend: lab.mysqlQuestions, asked: "questions", ours: []string{"db-row", "get-lock"}},
	}
}

// heat is one lock in one round.
type heat struct {
	perSecond, p50, p99, most float64 // milliseconds
	each                      float64 // questions to the backend for each grant
	fairness                  float64 // Jain's index over the processes, of the median second
	lost, failed              int
}

// compete runs all locks in turn, so many rounds, and writes the tables.
func compete(ctx context.Context, l lab, out io.Writer, rounds int, t terms) error {
	all := contests()
	heats := map[string][]heat{}
	for range rounds {
		for _, name := range []string{serial, unguarded} {
			h, err := run(ctx, l, all[0], name, t)
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			heats[name] = append(heats[name], h)
		}
		for _, c := range all {
			for _, name := range slices.Concat(c.ours, c.peers) {
				h, err := run(ctx, l, c, name, t)
				if err != nil {
					return fmt.Errorf("%s: %w", name, err)
				}
				if h.lost != 0 {
					return fmt.Errorf("%s lost %d updates: nothing to compare", name, h.lost)
				}
				heats[name] = append(heats[name], h)
			}
		}
	}
	fmt.Fprintf(out, "## The locks alone\n\n%d processes x %d clients, the SELECT and the UPDATE under each lock, no HTTP; %d rounds of %v in turn. Medians; in brackets the range.\n", processes, t.clients, rounds, t.length)
	fmt.Fprintf(out, "\n| limit | sold /s | p50 ms | p99 ms | lost |\n|---|---:|---:|---:|---:|\n")
	for _, name := range []string{serial, unguarded} {
		hs := heats[name]
		lost := 0
		for _, h := range hs {
			lost += h.lost
		}
		fmt.Fprintf(out, "| %s | %s | %s | %s | %d |\n", name, ranged(hs, rateOf, 0), ranged(hs, p50Of, 1), ranged(hs, p99Of, 1), lost)
	}
	for _, c := range all {
		fmt.Fprintf(out, "\n| %s | sold /s | p50 ms | p99 ms | max ms | %s per grant | fairness |\n|---|---:|---:|---:|---:|---:|---:|\n", c.title, c.asked)
		for _, name := range slices.Concat(c.ours, c.peers) {
			hs := heats[name]
			fmt.Fprintf(out, "| %s | %s | %s | %s | %s | %s | %s |\n", name, ranged(hs, rateOf, 0), ranged(hs, p50Of, 1), ranged(hs, p99Of, 1),
				ranged(hs, func(h heat) float64 { return h.most }, 0), ranged(hs, func(h heat) float64 { return h.each }, 1), ranged(hs, fairnessOf, 2))
		}
	}
	fmt.Fprintf(out, "\n| ours | against the best of | times its rate | wanted | times its p99 | wanted |\n|---|---|---:|---:|---:|---:|\n")
	for _, c := range all {
		for _, v := range c.compared {
			v.write(out, heats)
		}
	}
	return nil
}

func (c comparison) write(out io.Writer, heats map[string][]heat) {
	best := slices.MaxFunc(c.others, func(a, b string) int {
		return int(math.Copysign(1, middle(heats[a], rateOf)-middle(heats[b], rateOf)))
	})
	wanted := "-"
	if c.p99 > 0 {
		wanted = fmt.Sprintf("%.1f or less", c.p99)
	}
	fmt.Fprintf(out, "| %s | %s | %.2f | %.2f | %.2f | %s |\n", c.ours, strings.Join(c.others, "; "),
		middle(heats[c.ours], rateOf)/middle(heats[best], rateOf), c.least, middle(heats[c.ours], p99Of)/middle(heats[best], p99Of), wanted)
}

func rateOf(h heat) float64     { return h.perSecond }
func p50Of(h heat) float64      { return h.p50 }
func p99Of(h heat) float64      { return h.p99 }
func fairnessOf(h heat) float64 { return h.fairness }

func middle(hs []heat, of func(heat) float64) float64 {
	all := make([]float64, len(hs))
	for i, h := range hs {
		all[i] = of(h)
	}
	slices.Sort(all)
	return all[len(all)/2]
}

// ranged is the median, with the least and the most behind it.
func ranged(hs []heat, of func(heat) float64, digits int) string {
	least, most := math.Inf(1), math.Inf(-1)
	for _, h := range hs {
		least, most = min(least, of(h)), max(most, of(h))
	}
	return fmt.Sprintf("%.*f (%.*f–%.*f)", digits, middle(hs, of), digits, least, digits, most)
}

// run is one heat.
func run(ctx context.Context, l lab, c contest, name string, t terms) (heat, error) {
	before, err := c.backend(l, ctx)
	if err != nil {
		return heat{}, err
	}
	crews, clients := processes, t.clients
	if name == serial {
		crews, clients = 1, processes*t.clients
	}
	sales, lost, err := sellOut(ctx, l, name, crews, task{Lab: l, Clients: clients, Length: t.length})
	if err != nil {
		return heat{}, err
	}
	after, err := c.backend(l, ctx)
	if err != nil {
		return heat{}, err
	}
	h := judge(sales, t.length)
	h.lost = lost
	if n := slices.Concat(sales...); len(n) > 0 {
		h.each = float64(after-before) / float64(len(n))
	}
	return h, nil
}

// judge has the figures of all processes' sales, made within the same length of time.
func judge(crews [][]sale, length time.Duration) heat {
	all := slices.Concat(crews...)
	if len(all) == 0 {
		return heat{}
	}
	first, last := all[0].Sold, all[0].Sold
	took := make([]time.Duration, len(all))
	for i, s := range all {
		first, last, took[i] = min(first, s.Sold), max(last, s.Sold), s.Took
	}
	slices.Sort(took)
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	return heat{
		perSecond: float64(len(all)) / max(time.Duration(last-first), length).Seconds(),
		p50:       ms(took[len(took)/2]), p99: ms(took[len(took)*99/100]), most: ms(took[len(took)-1]),
		fairness: fairness(crews, first, length),
	}
}

// fairness is Jain's index, (sum x)^2 / (n sum x^2), over the processes' sales within a
// second; the median of the seconds that are whole.
func fairness(crews [][]sale, first int64, length time.Duration) float64 {
	var seconds []float64
	for from := first; from+int64(time.Second) <= first+int64(length); from += int64(time.Second) {
		var sum, squares float64
		for _, crew := range crews {
			var n float64
			for _, s := range crew {
				if s.Sold >= from && s.Sold < from+int64(time.Second) {
					n++
				}
			}
			sum, squares = sum+n, squares+n*n
		}
		if squares > 0 {
			seconds = append(seconds, sum*sum/(float64(len(crews))*squares))
		}
	}
	if len(seconds) == 0 {
		return 0
	}
	slices.Sort(seconds)
	return seconds[len(seconds)/2]
}
