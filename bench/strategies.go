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

// instances is the number of instances of a strategy, each with connections of its own: to each other, they
// are like the processes of as many replicas.
const instances = 3

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
				if _, errs[i] = strategies[i%len(strategies)].Deduct(ctx, order); errors.Is(errs[i], locks.ErrNotAcquired) && ctx.Err() == nil {
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
	n := instances
	if name == serial {
		n = 1
	}
	for range n {
		clients, err := connect(b.at)
		ends = append(ends, clients.Close)
		if err != nil {
			return nil, end, err
		}
		if library, other := peers()[name]; other {
			lock, stop, err := library(b.at)
			if err != nil {
				return nil, end, err
			}
			ends = append(ends, stop)
			all = append(all, locks.Guard(lock, stock.NewLedger(clients.DB)))
			continue
		}
		construct, ok := catalog.ConstructorOf(cmp.Or(strategyIDs[name], name))
		if !ok {
			return nil, end, fmt.Errorf("there is no strategy %q", name)
		}
		all = append(all, construct(clients))
	}
	return all, end, nil
}

// connect connects to all servers with the settings of a replica. Close the clients also after an error.
func connect(at rig.Addresses) (b catalog.Backends, err error) {
	b.Lease = lease
	if b.DB, err = stock.Open(at.MySQL, connections); err != nil {
		return b, err
	}
	for _, url := range at.Redis {
		client, err := redislock.Open(url, connections)
		if err != nil {
			return b, err
		}
		b.Redlock = append(b.Redlock, client)
	}
	b.Redis = b.Redlock[0]
	if b.ZooKeeper, err = zklock.Open(at.Zookeeper, session, zklock.Access{}); err != nil {
		return b, err
	}
	b.Etcd, err = etcdlock.Open(at.Etcd, etcdlock.Access{})
	return b, err
}
