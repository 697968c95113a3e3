package experiment

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"sync/atomic"
	"time"

	"oversell/lab/history"
	"oversell/lab/load"
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
	token string
	http  *http.Client
	rec   *recorder
	cards []Card
	// products are numbered on: each trial has one that nobody has touched.
	products atomic.Int64
	// looks at the backends' counters so far, and what each adds to them.
	looks, ownCost int64
}

// Open looks at a lab that was started with Config, and records its steps.
func Open(ctx context.Context, r *rig.Rig) (*Class, error) {
	c := &Class{
		Rig: r, token: r.Addresses().Token,
		http: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 256}, Timeout: 2 * time.Minute},
	}
	c.products.Store(1000)
	if err := c.call(ctx, http.MethodGet, c.base(0)+"/strategies", nil, &c.cards); err != nil {
		return nil, err
	}
	if err := c.learnOwnCost(ctx); err != nil {
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

func (c *Class) base(replica int) string { return c.Rig.Addresses().Replicas[replica] }

func name(replica int) string { return "replica-" + strconv.Itoa(replica+1) }

// since is the time on the recording's clock.
func (c *Class) since() time.Duration { return time.Since(c.rec.start) }

// stocked puts pieces of a new product on the shelf.
func (c *Class) stocked(ctx context.Context, through, pieces int) (product int64, err error) {
	product = c.products.Add(1)
	where := fmt.Sprintf("%s/stock/%d?new=true&count=%d", c.base(through), product, pieces)
	return product, c.call(ctx, http.MethodPut, where, nil, nil)
}

// remaining is what is left of the product, as the strategy counts it.
func (c *Class) remaining(ctx context.Context, through int, strategy string, product int64) (int, error) {
	var item struct {
		Count int `json:"count"`
	}
	where := fmt.Sprintf("%s/stock/%d?strategy=%s", c.base(through), product, url.QueryEscape(strategy))
	return item.Count, c.call(ctx, http.MethodGet, where, nil, &item)
}

// buy sends one request through a replica.
func (c *Class) buy(ctx context.Context, through int, s Subject, params url.Values) history.Op {
	query := url.Values{"strategy": {s.Card.ID}, "product": {strconv.FormatInt(s.product, 10)}}
	if s.Fenced {
		query.Set("fenced", "true")
	}
	for name, values := range params {
		query[name] = values
	}
	op := load.One(ctx, c.http, c.base(through)+"/check/lock?"+query.Encode(), c.rec.start)
	op.Strategy = s.Card.ID
	if op.Replica == "" {
		op.Replica = name(through)
	}
	return op
}

// stop arms a failpoint: whoever takes the step next on that replica waits there.
func (c *Class) stop(ctx context.Context, replica int, s Subject, step string) error {
	body := map[string]any{"strategy": s.Card.ID, "product": s.product, "step": step}
	return c.call(ctx, http.MethodPost, c.base(replica)+"/lab/failpoints", body, nil)
}

// stopped is who waits at a failpoint of the replica, by key.
func (c *Class) stopped(ctx context.Context, replica int) (map[string]string, error) {
	var state struct {
		Stopped []struct{ Key, Owner string } `json:"stopped"`
	}
	if err := c.call(ctx, http.MethodGet, c.base(replica)+"/lab/failpoints", nil, &state); err != nil {
		return nil, err
	}
	owners := map[string]string{}
	for _, s := range state.Stopped {
		owners[s.Key] = s.Owner
	}
	return owners, nil
}

// letGo lets one who was stopped go on.
func (c *Class) letGo(ctx context.Context, replica int, owner string) error {
	return c.call(ctx, http.MethodPost, c.base(replica)+"/lab/stopped/"+url.PathEscape(owner)+"/go", nil, nil)
}

// goOn lets everybody on the replica go on, and disarms what was not reached.
func (c *Class) goOn(ctx context.Context, replica int) error {
	return c.call(ctx, http.MethodDelete, c.base(replica)+"/lab/failpoints", nil, nil)
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
		errs = append(errs, c.ready(ctx, i), c.goOn(ctx, i))
	}
	return errors.Join(append(errs, c.rec.listening(ctx))...)
}

// ready waits until the replica reaches all its backends.
func (c *Class) ready(ctx context.Context, replica int) error {
	return eventually(ctx, name(replica)+" is ready", func() bool {
		return c.call(ctx, http.MethodGet, c.base(replica)+"/readyz", nil, nil) == nil
	})
}

// kill ends a replica as a power cut does.
func (c *Class) kill(replica int) error {
	server, err := c.Rig.Server(name(replica))
	if err != nil {
		return err //nolint:wrapcheck // names the server
	}
	server.Kill()
	return nil
}

// restart has the replica begin anew, whatever state it is in.
func (c *Class) restart(ctx context.Context, replica int) error {
	server, err := c.Rig.Server(name(replica))
	if err != nil {
		return err //nolint:wrapcheck // names the server
	}
	if err := server.Stop(ctx); err != nil {
		return err //nolint:wrapcheck // names the server
	}
	if err := server.Start(ctx); err != nil {
		return err //nolint:wrapcheck // names the server
	}
	if err := c.ready(ctx, replica); err != nil {
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

// call asks the lab for something.
func (c *Class) call(ctx context.Context, method, where string, body, answer any) error {
	var in io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return fmt.Errorf("%s: %w", where, err)
		}
		in = bytes.NewReader(text)
	}
	request, err := http.NewRequestWithContext(ctx, method, where, in)
	if err != nil {
		return fmt.Errorf("%s: %w", where, err)
	}
	request.Header.Set("X-Lab-Token", c.token)
	response, err := c.http.Do(request)
	if err != nil {
		return err //nolint:wrapcheck // names the URL
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", where, err)
	case response.StatusCode != http.StatusOK:
		return fmt.Errorf("%s %s: %s: %s", method, where, response.Status, bytes.TrimSpace(text))
	case answer == nil:
		return nil
	}
	if err := json.Unmarshal(text, answer); err != nil {
		return fmt.Errorf("%s: %w", where, err)
	}
	return nil
}
