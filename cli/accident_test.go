package cli_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptrace"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/api"
	"oversell/lab/check"
	"oversell/lab/history"
	"oversell/lab/rig"
	"oversell/lab/rig/rigtest"
)

// TestBackendStopsInMidRun stops a backend during a run and starts it again. Meanwhile, errors must
// name the backend. No update may be lost, and the replicas must continue without a restart.
func TestBackendStopsInMidRun(t *testing.T) {
	for _, c := range []struct {
		strategy, backend string
		servers           []string
	}{
		{"redis", "redis", []string{"redis-1"}},
		{"redlock", "redlock", []string{"redis-1", "redis-3", "redis-5"}},
		{"zk", "zookeeper", []string{"zookeeper"}},
		{"etcd", "etcd", []string{"etcd"}},
		{"for-update", "mysql", []string{"mysql"}},
		{"version", "mysql", []string{"mysql"}},
		{"db-row", "mysql", []string{"mysql"}},
		{"redis", "mysql", []string{"mysql"}},
	} {
		t.Run(c.strategy+" without "+c.backend, func(t *testing.T) { backendStops(t, c.strategy, c.backend, c.servers) })
	}
}

func backendStops(t *testing.T, strategy, backend string, servers []string) {
	const initial = 1_000_000
	restock(t, initial)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	answered := make(chan reply, 1)
	h := loadWith(t, strategy, 30, 100, func() {
		for i := range servers {
			if err := server(t, servers[i]).Stop(ctx); err != nil {
				t.Errorf("stop %s: %v", servers[i], err)
			}
		}
		r, err := send(ctx, http.MethodGet, testLab.Addresses().Target, checkLock(strategy, "wait=2s"))
		if err != nil {
			t.Errorf("while %s is down: %v", backend, err)
		}
		answered <- r
		for i := range servers {
			if err := server(t, servers[i]).Start(ctx); err != nil {
				t.Errorf("start %s: %v", servers[i], err)
			}
		}
	})
	if r := <-answered; r.HTTP != http.StatusServiceUnavailable || r.Backend != backend || r.RetryAfter == "" {
		t.Errorf("while %s is down: want a 503 that names it, got %+v", backend, r)
	}
	eventually(t, strategy+" sells again", func() (bool, string) {
		r := buy(t, strategy)
		return r.HTTP == http.StatusOK, fmt.Sprintf("%+v", r)
	})
	// The stock also fell by the call of buy above, and perhaps by sales with an unknown outcome.
	extra := initial - left(t) - history.Taken(h.Ops, history.OK)
	verdict := check.Stock(h.Ops, initial, left(t)+1)
	if verdict.LostMin > 0 {
		t.Errorf("updates were lost: %+v (the stock fell by %d more than the reported sales)", verdict, extra)
	}
	if verdict.LostMax < 0 {
		t.Errorf("the stock fell by more than all possible sales: %+v", verdict)
	}
	t.Logf("%d sold, %d refused, %d unknown", verdict.Sold, len(h.Ops)-verdict.Sold-verdict.Unknown, verdict.Unknown)
}

// TestClientDisconnects disconnects waiting clients: they must leave no lock and no sale behind.
func TestClientDisconnects(t *testing.T) {
	for _, strategy := range safe {
		if strategy == "version" {
			continue // requests of version never wait
		}
		t.Run(strategy, func(t *testing.T) { clientsDisconnect(t, strategy) })
	}
}

// clientsDisconnect pauses a request that holds the lock. On each replica, another client then
// waits for the lock and disconnects. The holder continues when all replicas have noticed the
// disconnection.
func clientsDisconnect(t *testing.T, strategy string) {
	restock(t, 10)
	replicas := scenarioService(t).Replicas
	must(t, replicas[0].Arm(t.Context(), api.Failpoint{Strategy: strategy, Product: 1, Step: api.Granted}))
	defer func() { _ = replicas[0].ResumeAll(context.WithoutCancel(t.Context())) }()
	held := make(chan reply, 1)
	go func() {
		r, _ := send(t.Context(), http.MethodGet, replicas[0].Base, checkLock(strategy))
		held <- r
	}()
	eventually(t, "the holder is paused", func() (bool, string) {
		paused, err := replicas[0].Paused(t.Context())
		return len(paused) == 1, fmt.Sprintf("%v, %v", paused, err)
	})
	for _, replica := range replicas {
		refused := fmt.Sprintf("oversell_requests_total{outcome=%q,strategy=%q}", api.NotAcquired, strategy)
		before := metric(t, replica.Base, refused)
		waiting, disconnect := context.WithCancel(t.Context())
		sent := &httptrace.ClientTrace{WroteRequest: func(httptrace.WroteRequestInfo) { time.AfterFunc(300*time.Millisecond, disconnect) }}
		if r, err := send(httptrace.WithClientTrace(waiting, sent), http.MethodGet, replica.Base, checkLock(strategy, "wait=60s")); err == nil {
			t.Errorf("the waiter should have waited, got %+v", r)
		}
		eventually(t, "the replica notices that its client has gone", func() (bool, string) {
			now := metric(t, replica.Base, refused)
			return now == before+1, fmt.Sprintf("%d requests refused before, %d now", before, now)
		})
	}
	must(t, replicas[0].ResumeAll(t.Context()))
	if r := <-held; r.HTTP != http.StatusOK {
		t.Errorf("the holder: %+v", r)
	}
	// A lock that a disconnected client left would last ten seconds. So the next sales would fail.
	for _, replica := range replicas {
		if r := ask(t, http.MethodGet, replica.Base, checkLock(strategy, "wait=3s")); r.HTTP != http.StatusOK {
			t.Errorf("the next sale: %+v", r)
		}
	}
	if n := left(t); n != 6 {
		t.Errorf("%d left of 10 after the holder's sale and three more", n)
	}
}

// TestTermination checks that, after SIGTERM, running requests complete and all locks are released.
func TestTermination(t *testing.T) {
	for _, strategy := range []string{"db-row", "redis", "redlock", "zk"} {
		restock(t, 10)
		replica := server(t, "replica-3")
		held := make(chan reply, 1)
		go func() {
			r, _ := send(t.Context(), http.MethodGet, "http://"+replica.Addr(), checkLock(strategy, "hold=2s"))
			held <- r
		}()
		eventually(t, strategy+" is held", func() (bool, string) {
			r := ask(t, http.MethodGet, testLab.Addresses().Replicas[0], checkLock(strategy, "wait=0s"))
			return r.HTTP == http.StatusServiceUnavailable, fmt.Sprintf("%+v", r)
		})
		if err := replica.Stop(t.Context()); err != nil {
			t.Errorf("%s: SIGTERM: %v", strategy, err)
		}
		if r := <-held; r.HTTP != http.StatusOK {
			t.Errorf("%s: the running request: %+v", strategy, r)
		}
		if r := ask(t, http.MethodGet, testLab.Addresses().Replicas[0], checkLock(strategy, "wait=0s")); r.HTTP != http.StatusOK {
			t.Errorf("%s: its lock was not released: %+v", strategy, r)
		}
		if err := replica.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// TestFenceOutlivesRedis deletes the fence counter in Redis by FLUSHALL. The row in MySQL keeps its
// fence, so the next holder of the lock must get a higher fence than the row's.
func TestFenceOutlivesRedis(t *testing.T) {
	restock(t, 10)
	var before reply
	for range 3 {
		before = buy(t, "redis", "fenced=true")
	}
	if before.HTTP != http.StatusOK || before.Fence < 3 {
		t.Fatalf("three fenced sales: %+v", before)
	}
	options, err := redis.ParseURL(testLab.Addresses().Redis[0])
	if err != nil {
		t.Fatal(err)
	}
	client := redis.NewClient(options)
	defer func() { _ = client.Close() }()
	counted := flushes(t, "redis")
	if err := client.FlushAll(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	if counted == nil || *flushes(t, "redis") != *counted+1 || flushes(t, "zk") != nil {
		t.Errorf("one FLUSHALL more than %v: the replica counts %v, and for zk %v", counted, flushes(t, "redis"), flushes(t, "zk"))
	}
	if after := buy(t, "redis", "fenced=true"); after.HTTP != http.StatusOK || after.Fence <= before.Fence {
		t.Errorf("after the loss of the counter: %+v, want a fence above %d", after, before.Fence)
	}
}

// flushes counts FLUSHALL and FLUSHDB on the strategy's Redis. nil means a strategy without Redis.
func flushes(t *testing.T, strategy string) *int64 {
	t.Helper()
	var item struct{ Flushes *int64 }
	res, err := http.Get(testLab.Addresses().Target + "/stock/1?strategy=" + strategy) //nolint:noctx // a loopback address
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	if err := json.NewDecoder(res.Body).Decode(&item); err != nil {
		t.Fatal(err)
	}
	return item.Flushes
}

// TestStartsWithoutBackends starts a replica without MySQL, ZooKeeper and etcd. The replica must
// run, report that it is not ready, and reject sales with a 503.
func TestStartsWithoutBackends(t *testing.T) {
	lonely := rigtest.Start(t, rig.Config{Replicas: 1, Binary: built(), Token: token, Redis: 1})
	at := lonely.Addresses().Target
	if r := ask(t, http.MethodGet, at, "/healthz"); r.HTTP != http.StatusOK {
		t.Errorf("healthz: %+v", r)
	}
	if r := ask(t, http.MethodGet, at, "/readyz"); r.HTTP != http.StatusServiceUnavailable {
		t.Errorf("readyz: %+v", r)
	}
	// A replica looks up the product in MySQL before it acquires a lock. So it names MySQL for each
	// strategy, even if the lock's backend is missing, too.
	for _, strategy := range []string{"none", "redis", "zk", "etcd", "for-update"} {
		if r := ask(t, http.MethodGet, at, checkLock(strategy, "wait=1s")); r.HTTP != http.StatusServiceUnavailable || r.Backend != "mysql" {
			t.Errorf("%s: want a 503 that names mysql, got %+v", strategy, r)
		}
	}
}
