package stepper

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"time"

	"oversell/lab/history"
	"oversell/lab/replica"
	"oversell/lab/rig"
)

// Pieces are on the shelf when a round begins.
const Pieces = 10

// patience is how long a request may wait for the lock: as long as the service allows,
// for a class takes its time.
const patience = "60s"

// Lab is a running lab in which one strategy is stepped through.
type Lab struct {
	Strategy string
	// Lease is asked for with each request; 0: the replica's own. It is for strategies
	// that let a request choose, and at most a minute.
	Lease time.Duration

	replicas [2]replica.Replica // of A and of B
	start    time.Time
	products int64 // numbered on: no round finds what an earlier one left
}

// Open takes the first two replicas of a lab for the clients A and B.
func Open(addrs rig.Addresses, strategy string) (*Lab, error) {
	if len(addrs.Replicas) < 2 {
		return nil, errors.New("stepper: two clients need two replicas")
	}
	l := &Lab{Strategy: strategy, start: time.Now(), products: 7000}
	client := &http.Client{Transport: &http.Transport{}}
	for i := range l.replicas {
		l.replicas[i] = replica.Replica{Base: addrs.Replicas[i], Token: addrs.Token, HTTP: client}
	}
	return l, nil
}

// stocked puts the pieces of a new product on the shelf.
func (l *Lab) stocked(ctx context.Context) (product int64, err error) {
	l.products++
	return l.products, l.replicas[A].Stock(ctx, l.products, Pieces)
}

// count is what is left of the product, as the strategy counts it.
func (l *Lab) count(ctx context.Context, product int64) (int, error) {
	return l.replicas[A].Count(ctx, l.Strategy, product)
}

// arm has the replica stop whoever takes any step on the product.
func (l *Lab) arm(ctx context.Context, who Who, product int64) error {
	const each = 10_000 // steps: more than any request takes
	return l.replicas[who].Stop(ctx, l.Strategy, product, "", each)
}

// stopped says where the client is stopped; ok is false where it is not.
func (l *Lab) stopped(ctx context.Context, who Who, product int64) (at replica.Stopped, ok bool, err error) {
	all, err := l.replicas[who].Stopped(ctx)
	for _, s := range all {
		if s.Key == replica.Key(product) {
			return s, true, err
		}
	}
	return replica.Stopped{}, false, err
}

// buy is the whole request of a client.
func (l *Lab) buy(ctx context.Context, who Who, product int64) history.Op {
	more := url.Values{"wait": {patience}}
	if l.Lease > 0 {
		more.Set("lease", l.Lease.String())
	}
	return l.replicas[who].Buy(ctx, l.Strategy, product, more, l.start)
}
