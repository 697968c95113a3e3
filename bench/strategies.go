package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"oversell/lab/history"
	"oversell/lab/load"
	"oversell/lab/rig"
	"oversell/locks"
	"oversell/locks/catalog"
	"oversell/locks/etcdlock"
	"oversell/locks/redislock"
	"oversell/locks/zklock"
	"oversell/stock"
)

// These settings are the same as those of a replica.
const (
	connections = 32
	lease       = 10 * time.Second
	session     = 10 * time.Second
)

// replicas is the number of instances of a strategy, each with connections of its own: to each other, they
// are like the processes of as many replicas.
const replicas = 3

// strategyIDs has the strategies of the candidates that are named otherwise.
var strategyIDs = map[string]string{serial: "mutex", unguarded: "none", update: "atomic", direct: "combining"}

// withoutHTTP measures a strategy, or another library's lock, without HTTP. requests, if it is not nil, counts
// the requests to the lock's backend.
func (b *bench) withoutHTTP(ctx context.Context, name string, requests counter) (f figures, err error) {
	strategies, end, err := b.open(name)
	defer end()
	if err != nil {
		return f, err
	}
	sell := func() (figures, error) { return b.sell(ctx, name, strategies) }
	if strings.HasSuffix(name, byAdapter) { // a JVM compiles the code of the lock only after thousands of grants
		if _, err := sell(); err != nil {
			return f, err
		}
	}
	if requests == nil {
		return sell()
	}
	return perGrant(ctx, b.at, requests, sell)
}

// sell sells from all clients for the length of a measurement. Each instance of the strategy gets a third of
// the clients.
func (b *bench) sell(ctx context.Context, name string, strategies []locks.Strategy) (f figures, err error) {
	if err := reset(ctx, b.at); err != nil {
		return f, err
	}
	records, errs := make([][]history.Op, b.clients), make([]error, b.clients)
	h := history.History{
		Strategy: "none", Start: time.Now(), Clients: b.clients, Loops: load.MaxRequests, Length: b.length,
	}
	var clients sync.WaitGroup
	for i := range b.clients {
		clients.Go(func() {
			for errs[i] == nil && time.Since(h.Start) < b.length {
				op := history.Op{Client: i + 1, Qty: 1, Outcome: history.OK, Call: time.Since(h.Start)}
				order := stock.Order{Product: product, Qty: 1, Owner: rand.Text(), Wait: time.Minute}
				if _, errs[i] = strategies[i%len(strategies)].Deduct(ctx, order); errors.Is(errs[i], locks.ErrNotAcquired) {
					// Other clients had the lock all the time. The wait of this one would lengthen the measurement.
					fmt.Fprintf(os.Stderr, "%s: a waiter was not woken within %v, and is left out\n", name, order.Wait)
					errs[i] = nil
					return
				}
				op.Return = time.Since(h.Start)
				records[i] = append(records[i], op)
			}
		})
	}
	clients.Wait()
	if err := errors.Join(errs...); err != nil {
		return f, err
	}
	h.Ops = history.Merge(records)
	return summarise(ctx, b.at, h)
}

// open opens the instances of a strategy, or of another library's lock. end closes all that was opened,
// also after an error.
func (b *bench) open(name string) (all []locks.Strategy, end func(), err error) {
	var ends []func()
	end = func() {
		for _, stop := range ends {
			stop()
		}
	}
	n := replicas
	if name == serial {
		n = 1
	}
	for range n {
		clients, stop, err := connect(b.at)
		ends = append(ends, stop)
		if err != nil {
			return nil, end, err
		}
		var strategy locks.Strategy
		construct, ok := catalog.ConstructorOf(cmp.Or(strategyIDs[name], name))
		if ok {
			strategy = construct(clients)
		}
		if library, other := peers()[name]; other {
			lock, stop, err := library(b.at)
			if err != nil {
				return nil, end, err
			}
			ends = append(ends, stop)
			strategy, ok = locks.Guard(lock, stock.NewLedger(clients.DB)), true
		}
		if !ok {
			return nil, end, fmt.Errorf("there is no strategy %q", name)
		}
		all = append(all, strategy)
	}
	return all, end, nil
}

// connect connects to all servers with the settings of a replica. end closes what was opened, also after
// an error.
func connect(at rig.Addresses) (b catalog.Backends, end func(), err error) {
	var ends []func()
	end = func() {
		for _, stop := range ends {
			stop()
		}
	}
	b.Lease = lease
	if b.DB, err = stock.Open(at.MySQL, connections); err != nil {
		return b, end, err
	}
	ends = append(ends, func() {
		if pool, err := b.DB.DB(); err == nil {
			_ = pool.Close()
		}
	})
	for i, url := range at.Redis {
		client, err := redislock.Open(url, connections)
		if err != nil {
			return b, end, err
		}
		ends = append(ends, func() { _ = client.Close() })
		b.Redlock = append(b.Redlock, client)
		if i == 0 {
			b.Redis = client
		}
	}
	if b.ZooKeeper, err = zklock.Open(at.Zookeeper, session); err != nil {
		return b, end, err
	}
	ends = append(ends, b.ZooKeeper.Close)
	if b.Etcd, err = etcdlock.Open(at.Etcd); err != nil {
		return b, end, err
	}
	ends = append(ends, func() { _ = b.Etcd.Close() })
	return b, end, nil
}
