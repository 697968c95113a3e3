// Package stepper leads two clients through one strategy, step by step. Both buy one piece of the
// same product, each on a replica of its own, and both stop at every step of the strategy. The user
// chooses which client continues, and so can cause a lost update by hand. A [Graph] has every order of
// the steps, and [Lab.Solve] plays one that loses an update. The replicas and servers are real, so a
// client may have to wait for the lock.
package stepper

import (
	"context"
	"errors"
	"net/url"
	"time"

	"oversell/api"
	"oversell/lab/history"
	"oversell/lab/load"
	"oversell/lab/rig"
)

// Pieces is the stock at the start of a round.
const Pieces = 10

// maxWait is how long a request may wait for the lock: the longest that the service allows.
const maxWait = "60s"

// Lab is a running lab with the strategy that the clients use.
type Lab struct {
	Strategy string
	// Lease is the lease of each request, a minute at most. 0 means the default lease of the replica.
	// Set Lease only for strategies that let a request choose its lease.
	Lease time.Duration

	replicas [2]api.Client // of A and of B
	start    time.Time
	products int64 // the id of the newest one: each round has a new product
	// rankFences numbers the fences of a round from 1, because etcd's fences rise over all rounds.
	rankFences bool
}

// Open returns a Lab that uses the first two replicas of a lab for the clients A and B.
func Open(addrs rig.Addresses, strategy string) (*Lab, error) {
	if len(addrs.Replicas) < 2 {
		return nil, errors.New("stepper: two clients need two replicas")
	}
	l := &Lab{Strategy: strategy, start: time.Now(), products: 7000}
	client := api.Direct()
	for i := range l.replicas {
		l.replicas[i] = api.Client{Base: addrs.Replicas[i], Token: addrs.Token, HTTP: client}
	}
	return l, nil
}

// apart reports whether the clients never wait for each other: the strategy locks nothing, or only within
// a replica. Then a slow step is no wait, however busy the machine is.
func (l *Lab) apart() bool { return l.Strategy == "none" || l.Strategy == "mutex" }

func (l *Lab) count(ctx context.Context, product int64) (int, error) {
	return l.replicas[A].Count(ctx, l.Strategy, product)
}

func (l *Lab) buy(ctx context.Context, client Client, product int64) history.Op {
	more := url.Values{"wait": {maxWait}}
	if l.Lease > 0 {
		more.Set("lease", l.Lease.String())
	}
	return load.Buy(ctx, l.replicas[client], l.Strategy, product, more, l.start)
}
