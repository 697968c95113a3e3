package player

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

	"oversell/api"
	"oversell/lab/backend"
	"oversell/lab/chaos"
	"oversell/lab/fault"
	"oversell/lab/history"
	"oversell/lab/load"
	"oversell/lab/rig"
)

// Lease and ZKSession are long enough for renewals on a slow machine, and short enough for experiments that wait until
// they end.
const (
	Lease     = 3 * time.Second
	ZKSession = 3 * time.Second
)

// Config returns a lab with short leases, and the servers and links that the faults need.
func Config(binary, token string) rig.Config {
	cfg := rig.FullLab(binary, token)
	cfg.Proxied, cfg.RedisReplica, cfg.Clocks, cfg.Zookeeper, cfg.Etcd = true, true, true, 3, 3
	// On each replica, every strategy may hold a database connection at the same time.
	cfg.ReplicaArgs = []string{"--lease", Lease.String(), "--zk-session", ZKSession.String(), "--conns", "96"}
	return cfg
}

// GrantBound limits the time from a fault to the next grant: rest of the lease, detection, delays.
const GrantBound = 3*Lease + 2*time.Second

// Wait returns the parameter for the longest wait of a request.
func Wait(d time.Duration) url.Values { return url.Values{"wait": {d.String()}} }

// Testbed is a running lab, with a recorder of its steps.
type Testbed struct {
	Rig   *rig.Rig
	http  *http.Client
	rec   *recorder
	Cards []api.Card // of the strategies, in the order of the catalogue
	Idle  bool       // in a test, no fault is injected: then no run may have a verdict
	MySQL string     // the version of its MySQL or MariaDB
	// Stalled is the longest time without a processor for this process. After a longer time, a run that contradicts a card
	// shows nothing.
	Stalled time.Duration
	// products is the id of the newest product. Each run has a new one.
	products atomic.Int64
	ownCost  int64 // the result of OwnCost; 0 before its first call
}

// Open begins to record the steps of a lab that was started with Config.
func Open(ctx context.Context, r *rig.Rig) (*Testbed, error) {
	bed := &Testbed{
		Rig:  r,
		http: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 256}, Timeout: 2 * time.Minute},

		Stalled: Lease / 10,
	}
	bed.products.Store(1000)
	var err error
	if bed.MySQL, err = backend.MySQLVersion(ctx, r.Addresses().MySQL); err != nil {
		return nil, err
	}
	if err := bed.Replica(0).Call(ctx, http.MethodGet, "/strategies", nil, &bed.Cards); err != nil {
		return nil, err
	}
	bed.rec = record(bed.http, r.Addresses().Replicas, r.Addresses().Token)
	if err := bed.rec.awaitConnected(ctx); err != nil {
		bed.Close()
		return nil, err
	}
	return bed, nil
}

// Events returns the recorded steps of a strategy.
func (bed *Testbed) Events(s Subject) []history.Event { return bed.rec.eventsOf(s.Key()) }

// LostEvents returns the least number of steps that are missing in the recording.
func (bed *Testbed) LostEvents() int { return bed.rec.lostEvents() }

// Forget deletes the recorded steps, to free memory after they are judged.
func (bed *Testbed) Forget() { bed.rec.forget() }

// AwaitConnected waits until the steps of all replicas are recorded.
func (bed *Testbed) AwaitConnected(ctx context.Context) error { return bed.rec.awaitConnected(ctx) }

// Recording returns what was recorded of a strategy, with the answers to these requests.
func (bed *Testbed) Recording(s Subject, pieces int, ops []history.Op) history.Recording {
	return Leased(s.Card, history.Recording{Start: bed.rec.start, Stock: pieces, Ops: ops, Events: bed.Events(s)})
}

// Close ends the recording. The lab continues to run.
func (bed *Testbed) Close() {
	bed.rec.close()
	bed.http.CloseIdleConnections()
}

// Replica returns the nth replica, from 0.
func (bed *Testbed) Replica(n int) api.Client {
	addresses := bed.Rig.Addresses()
	return api.Client{Base: addresses.Replicas[n], Token: addresses.Token, HTTP: bed.http}
}

// ReplicaName returns the name of the nth replica, from 0.
func ReplicaName(n int) string { return "replica-" + strconv.Itoa(n+1) }

// Since returns the time since the start of the recording.
func (bed *Testbed) Since() time.Duration { return time.Since(bed.rec.start) }

// AddProduct adds a product with this number of pieces in stock, by a request to the replica through.
func (bed *Testbed) AddProduct(ctx context.Context, through, pieces int) (product int64, err error) {
	product = bed.products.Add(1)
	return product, bed.Replica(through).SetStock(ctx, product, pieces)
}

// Buy sends a sale to a replica, and returns its answer.
func (bed *Testbed) Buy(ctx context.Context, through int, s Subject, params url.Values) history.Op {
	all := url.Values{}
	maps.Copy(all, params)
	if s.Fenced {
		all.Set("fenced", "true")
	}
	if s.lease > 0 {
		all.Set("lease", s.lease.String())
	}
	if patience, err := time.ParseDuration(params.Get("wait")); err == nil && patience > 0 { // its last try may come later
		all.Set("wait", min(patience+time.Duration(s.Card.PollMS)*time.Millisecond, time.Minute).String())
	}
	op := load.Buy(ctx, bed.Replica(through), s.Card.ID, s.Product, all, bed.rec.start)
	if op.Replica == "" {
		op.Replica = ReplicaName(through)
	}
	return op
}

// StopNext arms a failpoint: on this replica, the next request of s that reaches the step waits there.
func (bed *Testbed) StopNext(ctx context.Context, on int, s Subject, step api.Step) error {
	return bed.StopFirst(ctx, 1, on, s, step)
}

// StopFirst stops the first requests of a replica at a step.
func (bed *Testbed) StopFirst(ctx context.Context, requests, on int, s Subject, step api.Step) error {
	f := api.Failpoint{Strategy: s.Card.ID, Product: s.Product, Step: step, Times: requests}
	if step == chaos.EveryStep { // no request takes more than 10,000 steps
		f.Step, f.Times, f.Commands = "", 10_000, true
	}
	return bed.Replica(on).Arm(ctx, f)
}

// Stopped returns the owners (requests) that wait at failpoints of the replica, by lock key.
func (bed *Testbed) Stopped(ctx context.Context, on int) (map[string]string, error) {
	all, err := bed.Replica(on).Paused(ctx)
	owners := map[string]string{}
	for _, s := range all {
		owners[s.Key] = s.Owner
	}
	return owners, err
}

// Heal restores links, servers and requests at failpoints, also after a failed experiment.
func (bed *Testbed) Heal(ctx context.Context) error {
	var errs []error
	for _, link := range bed.Rig.Links() {
		errs = append(errs, link.Restore())
	}
	for _, server := range bed.Rig.Servers() {
		if server.PID() == 0 {
			errs = append(errs, server.Start(ctx))
		}
	}
	for i := range bed.Rig.Addresses().Replicas {
		ready := Eventually(ctx, ReplicaName(i)+" is ready", func() bool { return bed.Replica(i).Ready(ctx) == nil })
		errs = append(errs, ready, bed.Replica(i).ResumeAll(ctx))
	}
	return errors.Join(append(errs, bed.rec.awaitConnected(ctx))...)
}

// restart restarts the servers one after the other, and waits until each server serves again.
func (bed *Testbed) restart(ctx context.Context, servers ...string) error {
	for _, name := range servers {
		server, err := bed.Rig.Server(name)
		if err != nil {
			return err
		}
		if _, err := fault.Restart(server).Inject(ctx); err != nil {
			return err
		}
	}
	return bed.rec.awaitConnected(ctx)
}

// maxWait limits the wait for a condition. It is far more than a slow machine needs.
const maxWait = 60 * time.Second

// Eventually waits until a condition is true. After a minute, it returns an error that says what it waited for.
func Eventually(ctx context.Context, what string, so func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, maxWait)
	defer cancel()
	for !so() {
		if sleep(ctx, 10*time.Millisecond) != nil {
			return fmt.Errorf("%s: not within %v: %w", what, maxWait, context.Cause(ctx))
		}
	}
	return nil
}

// Within is Eventually with another limit.
func Within(ctx context.Context, limit time.Duration, what string, so func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return Eventually(ctx, what, so)
}

func sleep(ctx context.Context, d time.Duration) error { return load.Sleep(ctx, d) }
