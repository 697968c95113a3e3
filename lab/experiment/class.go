package experiment

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"sync/atomic"
	"time"

	"oversell/lab/history"
	"oversell/lab/replica"
	"oversell/lab/rig"
)

// Leases of a class for experiments: long enough for a slow machine to renew in time,
// short enough for a class to wait for their end.
const (
	Lease     = 3 * time.Second
	ZKSession = 3 * time.Second
)

// Config is the lab that experiments need: the classroom with short leases, and with
// faults' own servers where they ask for them.
func Config(binary, token string) rig.Config {
	cfg := rig.Classroom(binary, token)
	cfg.Ports = rig.Ports{}
	cfg.Proxied, cfg.RedisReplica, cfg.Clocks, cfg.Ensemble = true, true, true, 3
	// As many connections as a strategy for each product and replica may want.
	cfg.ReplicaArgs = []string{"--lease", Lease.String(), "--zk-session", ZKSession.String(), "--conns", "96"}
	return cfg
}

// Class is a running lab and what was seen of it.
type Class struct {
	Rig   *rig.Rig
	http  *http.Client
	rec   *recorder
	cards []Card
	mysql string // the version of its MySQL or MariaDB
	// products are numbered on: each trial has one that nobody has touched.
	products atomic.Int64
	// looks at the backends' counters so far, and what each adds to them.
	looks, ownCost int64
}

// Open looks at a lab that was started with Config, and records its steps.
func Open(ctx context.Context, r *rig.Rig) (*Class, error) {
	c := &Class{
		Rig:  r,
		http: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 256}, Timeout: 2 * time.Minute},
	}
	c.products.Store(1000)
	var err error
	if c.mysql, err = r.MySQLVersion(ctx); err != nil {
		return nil, err //nolint:wrapcheck // says all
	}
	if err := c.replica(0).Call(ctx, http.MethodGet, "/strategies", nil, &c.cards); err != nil {
		return nil, err
	}
	c.rec = record(c.http, r.Addresses().Replicas)
	if err := c.rec.listening(ctx); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// Close ends the recording, not the lab.
func (c *Class) Close() {
	c.rec.close()
	c.http.CloseIdleConnections()
}

// Cards are the strategies', in the order of the ladder.
func (c *Class) Cards() []Card { return c.cards }

// replica is the nth, from 0.
func (c *Class) replica(n int) replica.Replica {
	addresses := c.Rig.Addresses()
	return replica.Replica{Base: addresses.Replicas[n], Token: addresses.Token, HTTP: c.http}
}

func name(n int) string { return "replica-" + strconv.Itoa(n+1) }

// since is the time on the recording's clock.
func (c *Class) since() time.Duration { return time.Since(c.rec.start) }

// stocked puts pieces of a new product on the shelf.
func (c *Class) stocked(ctx context.Context, through, pieces int) (product int64, err error) {
	product = c.products.Add(1)
	return product, c.replica(through).Stock(ctx, product, pieces)
}

// buy sends one request through a replica.
func (c *Class) buy(ctx context.Context, through int, s Subject, params url.Values) history.Op {
	if s.Fenced {
		fenced := url.Values{"fenced": {"true"}}
		maps.Copy(fenced, params)
		params = fenced
	}
	op := c.replica(through).Buy(ctx, s.Card.ID, s.product, params, c.rec.start)
	if op.Replica == "" {
		op.Replica = name(through)
	}
	return op
}

// stop arms a failpoint: whoever takes the step next on that replica waits there.
func (c *Class) stop(ctx context.Context, on int, s Subject, step string) error {
	return c.replica(on).Stop(ctx, s.Card.ID, s.product, step, 1)
}

// stopped is who waits at a failpoint of the replica, by key.
func (c *Class) stopped(ctx context.Context, on int) (map[string]string, error) {
	all, err := c.replica(on).Stopped(ctx)
	owners := map[string]string{}
	for _, s := range all {
		owners[s.Key] = s.Owner
	}
	return owners, err
}

// heal makes the class as new after a failed or interrupted experiment.
func (c *Class) heal(ctx context.Context) error {
	var errs []error
	for _, line := range c.Rig.Lines() {
		errs = append(errs, line.Restore())
	}
	for _, server := range c.Rig.Servers() {
		if server.PID() == 0 {
			errs = append(errs, server.Start(ctx))
		}
	}
	for i := range c.Rig.Addresses().Replicas {
		errs = append(errs, c.ready(ctx, i), c.replica(i).GoOn(ctx))
	}
	return errors.Join(append(errs, c.rec.listening(ctx))...)
}

// ready waits until the replica reaches all its backends.
func (c *Class) ready(ctx context.Context, on int) error {
	return eventually(ctx, name(on)+" is ready", func() bool {
		return c.replica(on).Ready(ctx) == nil
	})
}

// kill ends a replica as a power cut does.
func (c *Class) kill(n int) error {
	server, err := c.Rig.Server(name(n))
	if err != nil {
		return err //nolint:wrapcheck // names the server
	}
	server.Kill()
	return nil
}

// restart has the replica begin anew, whatever state it is in.
func (c *Class) restart(ctx context.Context, n int) error {
	server, err := c.Rig.Server(name(n))
	if err != nil {
		return err //nolint:wrapcheck // names the server
	}
	if err := server.Stop(ctx); err != nil {
		return err //nolint:wrapcheck // names the server
	}
	if err := server.Start(ctx); err != nil {
		return err //nolint:wrapcheck // names the server
	}
	if err := c.ready(ctx, n); err != nil {
		return err
	}
	return c.rec.listening(ctx)
}

// patience with anything that should happen soon; a slow machine needs a fraction.
const patience = 60 * time.Second

var errNotSoon = errors.New("it did not happen in time")

// eventually waits until it is so.
func eventually(ctx context.Context, what string, so func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for !so() {
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: %w (%w)", what, errNotSoon, context.Cause(ctx))
		case <-time.After(10 * time.Millisecond):
		}
	}
	return nil
}
