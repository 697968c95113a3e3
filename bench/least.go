package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"oversell/lab/ratio"
	"oversell/locks/catalog"
	"oversell/locks/etcdlock"
	"oversell/locks/redislock"
)

// bounded has the locks whose rates least compares with their bounds, and the server of each.
var bounded = []struct{ lock, server string }{
	{"redis", "Redis"}, {"redis-fair", "Redis"}, {"redlock", "Redis"}, // the answers of five Redis come at the same time
	{"zk", "ZooKeeper"}, {"etcd", "etcd"}, {"db-row", "MySQL"}, {"get-lock", "MySQL"},
}

// The conditions under which least measures.
const (
	alone     = "one client"
	contended = "all clients"
	roundTrip = "round trip" // to a server, without a lock
)

// least compares the rate of a sale under each lock with a bound that no lock on the same server can exceed. A sale alone
// needs a request to acquire the lock, the two statements, and a request to release the lock. Where clients wait, the next
// one may send its statements as soon as the release has reached the server and the server's message has reached it:
// together one round trip.
func (b *bench) least(ctx context.Context) error {
	clients, err := connect(b.at)
	defer clients.Close()
	if err != nil {
		return err
	}
	statements := candidate{unguarded, alone}
	all := []candidate{statements}
	for _, l := range bounded {
		if trip := (candidate{l.server, roundTrip}); !slices.Contains(all, trip) {
			all = append(all, trip)
		}
		all = append(all, candidate{l.lock, alone}, candidate{l.lock, contended})
	}
	measured, err := inTurn(b, all, func(c candidate) (figures, error) {
		some := bench{at: b.at, clients: b.clients, length: b.length}
		switch c.condition {
		case roundTrip:
			return roundTrips(ctx, clients, c.strategy)
		case alone:
			some.clients = 1
		}
		return exact(some.withoutHTTP(ctx, c.strategy, backendOf(c.strategy)))
	})
	if err != nil {
		return err
	}
	b.printf("## What a lock must cost at least\n\nWithout HTTP. A round trip is one small request to the server. At most: with one client, the two statements and "+
		"two round trips for a sale; with %d, the two statements and one round trip, which a release needs to reach the next holder. The requests to MySQL include the two statements. "+
		"The statements of one client without a lock took %s us. Medians; in brackets their 95 %% intervals.\n\n",
		b.clients, ranged(measured[statements], microseconds, 0))
	rows := [][]string{{
		"lock", "round trip us", "requests, alone", "sales /s, alone", "of the most", fmt.Sprintf("requests, %d wait", b.clients), "sales /s", "of the most",
	}}
	for _, l := range bounded {
		trip := measured[candidate{l.server, roundTrip}]
		row := []string{l.lock, ranged(trip, microseconds, 0)}
		for i, condition := range []string{contended, alone} {
			m := measured[candidate{l.lock, condition}]
			share := ratio.Of(nearness(m, measured[statements], trip, i+1)).Text(2)
			row = slices.Insert(row, 2, ranged(m, each, 1), ranged(m, rate, 0), share)
		}
		rows = append(rows, row)
	}
	b.rows(rows)
	return nil
}

// microseconds returns the mean time of one after the other.
func microseconds(f figures) float64 { return 1e6 / rate(f) }

// nearness returns the part of the highest possible rate that a lock reaches, in each round.
func nearness(lock, statements, trip []figures, trips int) []float64 {
	all := make([]float64, len(lock))
	for i := range lock {
		all[i] = rate(lock[i]) * (1/rate(statements[i]) + float64(trips)/rate(trip[i]))
	}
	return all
}

// roundTrips measures small requests to a server, one after the other.
func roundTrips(ctx context.Context, c catalog.Backends, server string) (f figures, err error) {
	send := map[string]func() error{
		"Redis":     func() error { return redislock.PingMaster(ctx, c.Redis) },
		"ZooKeeper": func() error { return c.ZooKeeper.Ping(ctx) },
		"etcd":      func() error { return etcdlock.Ping(ctx, c.Etcd) },
		"MySQL":     func() error { return c.DB.WithContext(ctx).Exec("DO 0").Error },
	}[server]
	began := time.Now()
	for err == nil && time.Since(began) < time.Second/2 {
		err = send()
		f.Sold++
	}
	f.DurationS = time.Since(began).Seconds()
	return f, err
}
