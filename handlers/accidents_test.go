package handlers_test

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptrace"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"oversell/api"
	"oversell/lab/rig"
	"oversell/lab/rig/rigtest"
)

// TestBackendStopsInMidRun stops backends during runs and starts them again. Meanwhile, errors must
// name the backend. No update may be lost, and the replicas must continue without a restart.
func TestBackendStopsInMidRun(t *testing.T) {
	for _, stopped := range []struct {
		servers  []string
		backends map[string]string // by strategy
	}{
		{
			[]string{"redis-1", "redis-3", "redis-5", "zookeeper", "etcd"},
			map[string]string{"redis": "redis", "redlock": "redlock", "zk": "zookeeper", "etcd": "etcd"},
		},
		{
			[]string{"mysql"},
			map[string]string{"for-update": "mysql", "version": "mysql", "db-row": "mysql", "redis": "mysql"},
		},
	} {
		t.Run(strings.Join(stopped.servers, " "), func(t *testing.T) {
			all := sellDuring(t, slices.Sorted(maps.Keys(stopped.backends)), func(all []*sales) {
				together(t, stopped.servers, (*rig.Server).Stop)
				var answers []<-chan answer
				for _, s := range all {
					answers = append(answers, begin(t.Context(), testLab.Addresses().Target, checkLock(s.strategy, "wait=2s", fmt.Sprintf("product=%d", s.product))))
				}
				for i, s := range all {
					r := <-answers[i]
					if backend := stopped.backends[s.strategy]; r.err != nil || r.HTTP != http.StatusServiceUnavailable || r.Backend != backend || r.RetryAfter == "" {
						t.Errorf("%s while %s is down: want a 503 that names it, got %+v, %v", s.strategy, backend, r.reply, r.err)
					}
				}
				together(t, stopped.servers, (*rig.Server).Start)
			})
			for _, s := range all {
				s.check(t)
			}
			for _, replica := range labClients(t).Replicas { // each of them, not only the one that has sold
				rigtest.Eventually(t, "a replica has all servers again", func() (bool, string) {
					err := replica.Ready(t.Context())
					return err == nil, fmt.Sprint(err)
				})
			}
		})
	}
}

// together stops or starts servers at the same time.
func together(t *testing.T, names []string, do func(*rig.Server, context.Context) error) {
	t.Helper()
	var all sync.WaitGroup
	for _, name := range names {
		s := server(t, name)
		all.Go(func() {
			if err := do(s, t.Context()); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
	all.Wait()
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
	replicas := labClients(t).Replicas
	must(t, replicas[0].Arm(t.Context(), api.Failpoint{Strategy: strategy, Product: 1, Step: api.Granted}))
	defer func() { _ = replicas[0].ResumeAll(context.WithoutCancel(t.Context())) }()
	held := begin(t.Context(), replicas[0].Base, checkLock(strategy))
	awaitPaused(t, replicas[0], 1)
	for _, replica := range replicas {
		refused := fmt.Sprintf("oversell_requests_total{outcome=%q,strategy=%q}", api.NotAcquired, strategy)
		before := metric(t, replica.Base, refused)
		waiting, disconnect := context.WithCancel(t.Context())
		sent := &httptrace.ClientTrace{WroteRequest: func(httptrace.WroteRequestInfo) { time.AfterFunc(300*time.Millisecond, disconnect) }}
		if r, err := exchange(httptrace.WithClientTrace(waiting, sent), http.MethodGet, replica.Base, checkLock(strategy, "wait=60s")); err == nil {
			t.Errorf("the waiter should have waited, got %+v", r)
		}
		rigtest.Eventually(t, "the replica notices that its client has gone", func() (bool, string) {
			now := metric(t, replica.Base, refused)
			return now == before+1, fmt.Sprintf("%d requests refused before, %d now", before, now)
		})
	}
	must(t, replicas[0].ResumeAll(t.Context()))
	granted(t, "the holder", held)
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
	strategies := []string{"db-row", "redis", "redlock", "zk"}
	target := labClients(t).Target
	sale := func(i int, params ...string) string {
		return checkLock(strategies[i], append(params, fmt.Sprintf("product=%d", 601+i))...)
	}
	for i := range strategies {
		must(t, target.Call(t.Context(), http.MethodPut, fmt.Sprintf("/stock/%d?new=true&count=10", 601+i), nil, nil))
	}
	replica := server(t, "replica-3")
	var held []<-chan answer
	for i := range strategies {
		held = append(held, begin(t.Context(), "http://"+replica.Addr(), sale(i, "hold=3s")))
	}
	for i, strategy := range strategies {
		rigtest.Eventually(t, strategy+" is held", func() (bool, string) {
			r := ask(t, http.MethodGet, testLab.Addresses().Replicas[0], sale(i, "wait=0s"))
			return r.HTTP == http.StatusServiceUnavailable, fmt.Sprintf("%+v", r)
		})
	}
	if err := replica.Stop(t.Context()); err != nil {
		t.Errorf("SIGTERM: %v", err)
	}
	for i, strategy := range strategies {
		granted(t, strategy+": the running request", held[i])
		if r := ask(t, http.MethodGet, testLab.Addresses().Replicas[0], sale(i, "wait=0s")); r.HTTP != http.StatusOK {
			t.Errorf("%s: its lock was not released: %+v", strategy, r)
		}
	}
	must(t, replica.Start(t.Context()))
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
	counted := flushes(t, "redis")
	must(t, singleRedis(t).FlushAll(t.Context()).Err())
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
	item, err := labClients(t).Target.Stock(t.Context(), strategy, 1)
	must(t, err)
	return item.Flushes
}

// TestStartsWithoutBackends starts a replica without MySQL, ZooKeeper and etcd. The replica must
// run, report that it is not ready, and reject sales with a 503.
func TestStartsWithoutBackends(t *testing.T) {
	t.Parallel()
	lonely := rigtest.Start(t, rig.Config{Replicas: 1, Token: labToken, Redis: 1})
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
