package handlers_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"oversell/lab/history"
	"oversell/lab/load"
	"oversell/lab/rig/rigtest"
)

func TestBadInput(t *testing.T) {
	restock(t, 5000)
	for _, c := range []struct{ query, parameter, allowed string }{
		{"strategy=nonsense", "strategy", "none, mutex, mutex-in-tx, for-update"},
		{"strategy=", "strategy", "none, mutex"},
		{"product=abc", "product", "whole number"},
		{"product=0", "product", "from 1"},
		{"product=99999999999999999999", "product", "whole number"},
		{"qty=0", "qty", "from 1 to 100"},
		{"qty=101", "qty", "from 1 to 100"},
		{"qty=1.5", "qty", "whole number"},
		{"hold=-1s", "hold", "from 0s to 1m0s"},
		{"hold=10h", "hold", "from 0s to 1m0s"},
		{"hold=5", "hold", "such as 500ms"},
		{"outside=-1s", "outside", "from 0s to 1m0s"},
		{"wait=soon", "wait", "duration"},
		{"wait=-1ms", "wait", "from 0s"},
		{"strategy=redis&lease=1ms", "lease", "from 100ms"},
		{"strategy=zk&lease=5s", "lease", "db-row, db-row-fair, redis-setnx-expire"},
		{"strategy=redis-lua&pause=2m", "pause", "to 1m0s"},
		{"strategy=redis&pause=5ms", "pause", "db-row, db-row-fair, redis-setnx"},
		{"strategy=mutex&fenced=true", "fenced", "db-row, db-row-fair, redis, redis-fair"},
		{"strategy=redis&fenced=yes", "fenced", "true or false"},
		{"stratgey=redis", "stratgey", "strategy, product, qty, hold, outside, wait, pause, lease, fenced, nested, also"},
		{"strategy=redis&also=a,b", "also", "redis-multi, redis-multi-servers, zk-multi"},
		{"strategy=redis-multi&also=a,,b", "also", "1 to"},
		{"strategy=redis-multi&also=", "also", "1 to"},
		{"strategy=redis-multi&also=1,2,3,4,5,6,7,8,9", "also", "up to 8 names"},
		{"strategy=version&nested=true", "nested", "mutex, db-row"},
		{"strategy=redis&strategy=none", "strategy", "once"},
	} {
		r := ask(t, http.MethodGet, testLab.Addresses().Target, "/check/lock?"+c.query)
		if r.HTTP != http.StatusBadRequest || r.Parameter != c.parameter || !strings.Contains(r.Allowed, c.allowed) || !strings.Contains(r.Detail, c.parameter) {
			t.Errorf("%s: want a 400 on %s that allows %q, got %+v", c.query, c.parameter, c.allowed, r)
		}
	}
	if n := left(t); n != 5000 {
		t.Errorf("bad requests took %d pieces", 5000-n)
	}
}

// TestOutside checks that the work of outside is done before the lock is acquired.
func TestOutside(t *testing.T) {
	restock(t, 5000)
	for _, strategy := range []string{"none", "mutex", "redis"} {
		began := time.Now()
		r := buy(t, strategy, "outside=300ms", "hold=100ms")
		took := time.Since(began)
		if r.HTTP != http.StatusOK || took < 400*time.Millisecond {
			t.Errorf("%s: after %v: %+v", strategy, took, r)
		}
		if inside := time.Duration(r.HeldMS * float64(time.Millisecond)); inside > took-300*time.Millisecond {
			t.Errorf("%s: held for %v of %v, so the work outside was inside", strategy, inside, took)
		}
	}
}

// TestPause checks that a waiter sleeps for the pause of its request, in place of the 200 ms of its strategy.
func TestPause(t *testing.T) {
	restock(t, 5000)
	path, retries := checkLock("zk-ephemeral", "hold=1s", "pause=2ms"), 0
	both := []<-chan answer{begin(t.Context(), testLab.Addresses().Target, path), begin(t.Context(), testLab.Addresses().Target, path)}
	for _, one := range both {
		retries = max(retries, granted(t, path, one).Retries)
	}
	if retries <= 10 {
		t.Errorf("%d retries in about a second, with a pause of 2 ms", retries)
	}
}

func TestUnknownProductAndSoldOut(t *testing.T) {
	for _, strategy := range all {
		if r := buy(t, strategy, "product=77"); r.HTTP != http.StatusNotFound || r.Outcome != "unknown_product" {
			t.Errorf("%s, unknown product: %+v", strategy, r)
		}
		restock(t, 2)
		if r := buy(t, strategy, "qty=3"); r.HTTP != http.StatusConflict || r.Outcome != "sold_out" {
			t.Errorf("%s, 3 of 2: %+v", strategy, r)
		}
		if r := buy(t, strategy, "qty=2", "wait=0s"); r.HTTP != http.StatusOK || r.Remaining != 0 {
			t.Errorf("%s, 2 of 2, of a free lock: %+v", strategy, r)
		}
		if r := buy(t, strategy); r.HTTP != http.StatusConflict || left(t) != 0 {
			t.Errorf("%s, 1 of 0: %+v", strategy, r)
		}
	}
}

// TestWhichStrategiesOversell checks that unsafe strategies lose updates, and that safe strategies
// sell each piece once.
func TestWhichStrategiesOversell(t *testing.T) {
	pieces := 300
	if rigtest.IsNightly() {
		pieces = 2000
	}
	for _, strategy := range all {
		restock(t, pieces)
		h := sellAll(t, strategy, 100, pieces/100)
		sold, lost := count(h, history.Sold), count(h, history.Sold)-(pieces-left(t))
		switch {
		case sold != pieces:
			t.Errorf("%s: %d of %d sold: %+v", strategy, sold, pieces, firstFailure(h))
		case slices.Contains(safe, strategy) && lost != 0:
			t.Errorf("%s: %d updates were lost, though its card claims safety", strategy, lost)
		case !slices.Contains(safe, strategy) && lost <= 0:
			t.Errorf("%s: no update was lost, though the strategy is unsafe", strategy)
		}
	}
}

// sellAll sends clients x loops sales through nginx.
func sellAll(t *testing.T, strategy string, clients, loops int) history.History {
	t.Helper()
	h, err := load.Run(t.Context(), load.Plan{
		Target: testLab.Addresses().Target, Strategy: strategy, Product: 1, Qty: 1,
		Clients: clients, Loops: loops, Wait: 60 * time.Second,
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func count(h history.History, reason string) int {
	return history.Count(h.Ops, func(o *history.Op) bool { return o.Reason == reason })
}

func firstFailure(h history.History) history.Op {
	for _, o := range h.Ops {
		if o.Failed() {
			return o
		}
	}
	return history.Op{}
}

// TestOverrunByHand sends three requests whose work takes longer than their lease (tutorial 3.2).
// A naive lock then has several holders at a time; a lock with a watchdog has one. Each strategy
// sells another product, because all wait at the same time.
func TestOverrunByHand(t *testing.T) {
	naive := []string{"redis-setnx-expire", "redis-expire", "redis-uuid", "redis-lua", "redis-reentrant"}
	strategies := append(naive, "redis-watchdog", "redis")
	target := labClients(t).Target
	for i := range strategies {
		must(t, target.Call(t.Context(), http.MethodPut, fmt.Sprintf("/stock/%d?new=true&count=10", 701+i), nil, nil))
	}
	t.Parallel() // only now, as a reset deletes the names of other tests
	var sent [][]<-chan answer
	for i, strategy := range strategies {
		path := checkLock(strategy, fmt.Sprintf("product=%d", 701+i), "lease=1500ms", "hold=3500ms", "wait=60s")
		sent = append(sent, throughEach(t.Context(), func(int) string { return path }))
	}
	for i, strategy := range strategies {
		for _, answers := range sent[i] {
			granted(t, strategy, answers)
		}
		taken := 10 - ask(t, http.MethodGet, target.Base, fmt.Sprintf("/stock/%d", 701+i)).Count
		if loses := slices.Contains(naive, strategy); taken > 3 || loses != (taken < 3) {
			t.Errorf("%s: 3 sold, %d taken off", strategy, taken)
		}
	}
}
