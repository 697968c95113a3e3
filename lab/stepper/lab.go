package stepper

import (
	"context"
	"errors"
	"net/http"
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

// Lab is a running lab with the strategy to lead the clients through.
type Lab struct {
	Strategy string
	// Lease is the lease of each request, a minute at most; 0: the replica's own. It is for
	// strategies that let a request choose.
	Lease time.Duration

	replicas [2]api.Client // of A and of B
	start    time.Time
	products int64 // the id of the newest one: each round has a new product
}

// Open uses the first two replicas of a lab for the clients A and B.
func Open(addrs rig.Addresses, strategy string) (*Lab, error) {
	if len(addrs.Replicas) < 2 {
		return nil, errors.New("stepper: two clients need two replicas")
	}
	l := &Lab{Strategy: strategy, start: time.Now(), products: 7000}
	client := &http.Client{Transport: &http.Transport{}}
	for i := range l.replicas {
		l.replicas[i] = api.Client{Base: addrs.Replicas[i], Token: addrs.Token, HTTP: client}
	}
	return l, nil
}

// addProduct adds a new product.
func (l *Lab) addProduct(ctx context.Context) (product int64, err error) {
	l.products++
	return l.products, l.replicas[A].SetStock(ctx, l.products, Pieces)
}

// count returns the remaining stock, as the strategy counts it.
func (l *Lab) count(ctx context.Context, product int64) (int, error) {
	return l.replicas[A].Count(ctx, l.Strategy, product)
}

// arm makes the replica stop every request for the product at every step.
func (l *Lab) arm(ctx context.Context, who Who, product int64) error {
	const each = 10_000 // steps: more than any request takes
	return l.replicas[who].Arm(ctx, api.Failpoint{Strategy: l.Strategy, Product: product, Step: "", Times: each})
}

// stopped returns the step at which the client is stopped; ok is false if it is not.
func (l *Lab) stopped(ctx context.Context, who Who, product int64) (at api.Paused, ok bool, err error) {
	all, err := l.replicas[who].Paused(ctx)
	for _, s := range all {
		if s.Key == api.Key(product) {
			return s, true, err
		}
	}
	return api.Paused{}, false, err
}

// buy sends the request of a client.
func (l *Lab) buy(ctx context.Context, who Who, product int64) history.Op {
	more := url.Values{"wait": {maxWait}}
	if l.Lease > 0 {
		more.Set("lease", l.Lease.String())
	}
	return load.Buy(ctx, l.replicas[who], l.Strategy, product, more, l.start)
}
