package handlers_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/redis/go-redis/v9"

	"oversell/lab/rig/rigtest"
)

// TestManyWaitersOnOnePermit sends hundreds of requests to a semaphore with one permit. Each
// request waits at most one second, and each holder keeps the permit for three seconds. A few
// requests may get the permit. All other requests must get a 503 and leave nothing in the backend.
func TestManyWaitersOnOnePermit(t *testing.T) {
	requests := 300
	if rigtest.IsNightly() {
		requests = 1000
	}
	for _, backend := range backends {
		restock(t, 10)
		semaphore := locking("semaphore", backend, "storm", 0) + "&permits=1&wait=0s"
		pass(t, semaphore) // creates entries that the backend keeps
		before := goroutines(t)
		var promised []<-chan answer
		for i := range requests {
			base := testLab.Addresses().Replicas[i%3]
			promised = append(promised, begin(t.Context(), base, locking("semaphore", backend, "storm", 3*time.Second)+"&permits=1&wait=1s"))
		}
		outcomes := map[string]int{}
		for _, p := range promised {
			a := <-p
			outcomes[fmt.Sprintf("%d %s", a.HTTP, a.Outcome)]++
			if a.err != nil || a.HTTP == http.StatusServiceUnavailable && a.RetryAfter == "" {
				t.Errorf("%s: %+v, %v", backend, a.reply, a.err)
			}
		}
		if had := outcomes["200 held"]; had < 1 || had > 20 || had+outcomes["503 not_acquired"] != requests {
			t.Errorf("%s: %v", backend, outcomes)
		}
		pass(t, semaphore) // the permit is free
		rigtest.Eventually(t, backend+": the waiters' goroutines have ended", func() (bool, string) {
			now := goroutines(t)
			for i := range now {
				if now[i] > before[i]+20 {
					return false, fmt.Sprintf("%v before, %v now", before, now)
				}
			}
			return true, ""
		})
		nothingHeld(t, "storm")
	}
}

// goroutines returns the number of goroutines of each replica.
func goroutines(t *testing.T) (all []int) {
	t.Helper()
	for _, base := range testLab.Addresses().Replicas {
		all = append(all, metric(t, base, "go_goroutines"))
	}
	if slices.Contains(all, 0) {
		t.Fatalf("go_goroutines of the replicas: %v", all)
	}
	return all
}

// metric returns the value of a metric of the replica at base. It returns 0 if the replica does
// not report the metric.
func metric(t *testing.T, base, name string) int {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, base+"/metrics", nil)
	must(t, err)
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Do(request)
	must(t, err)
	defer func() { _ = answer.Body.Close() }()
	for lines := bufio.NewScanner(answer.Body); lines.Scan(); {
		if text, ok := strings.CutPrefix(lines.Text(), name+" "); ok {
			n, err := strconv.Atoi(text)
			must(t, err)
			return n
		}
	}
	return 0
}

// nothingHeld checks that Redis has no key of a primitive with this name, and that ZooKeeper has no
// ephemeral nodes. Persistent nodes may stay, because they hold no lock.
func nothingHeld(t *testing.T, name string) {
	t.Helper()
	client := singleRedis(t)
	keys, err := client.Keys(t.Context(), "primitive:*"+name+"*").Result()
	if err != nil || len(keys) > 0 {
		t.Errorf("left in redis: %q, %v", keys, err)
	}
	conn, _, err := zk.Connect([]string{testLab.Addresses().Zookeeper[0]}, 10*time.Second, zk.WithLogInfo(false))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	var look func(node string)
	look = func(node string) {
		children, stat, err := conn.Children(node)
		switch {
		case errors.Is(err, zk.ErrNoNode): // the node was deleted after the listing
		case err != nil:
			t.Errorf("read %s: %v", node, err)
		case stat.EphemeralOwner != 0:
			t.Errorf("left in zookeeper: %s", node)
		}
		for _, child := range children {
			look(path.Join(node, child))
		}
	}
	look("/oversell")
}

func singleRedis(t *testing.T) *redis.Client {
	t.Helper()
	options, err := redis.ParseURL(testLab.Addresses().Redis[0])
	if err != nil {
		t.Fatal(err)
	}
	client := redis.NewClient(options)
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// TestPrimitiveClientDisconnects checks that a holder or waiter whose client has disconnected does
// not block other requests.
func TestPrimitiveClientDisconnects(t *testing.T) {
	t.Parallel()
	for _, backend := range backends {
		for _, what := range []string{"write", "read", "semaphore"} {
			contender := "write"
			if what == "semaphore" {
				contender = what
			}
			probe := locking(contender, backend, "gone", 0) + "&wait=0s"
			holding, disconnect := context.WithCancel(t.Context())
			holder := begin(holding, testLab.Addresses().Replicas[0], locking(what, backend, "gone", time.Minute)+map[string]string{"semaphore": "&qty=3"}[what])
			await(t, probe)
			waiting, giveUp := context.WithTimeout(t.Context(), 300*time.Millisecond)
			if a := <-begin(waiting, testLab.Addresses().Replicas[1], locking(contender, backend, "gone", 0)+"&wait=60s"); a.err == nil {
				t.Errorf("%s %s: the waiter should have waited: %+v", backend, what, a.reply)
			}
			giveUp()
			disconnect()
			<-holder
			rigtest.Eventually(t, backend+" "+what+" is free", func() (bool, string) {
				r := ask(t, http.MethodGet, testLab.Addresses().Target, probe)
				return r.HTTP == http.StatusOK, fmt.Sprintf("%+v", r)
			})
		}
	}
}

// TestPrimitiveIsLost checks that a request gets an error if its lock is deleted in Redis.
func TestPrimitiveIsLost(t *testing.T) {
	for _, what := range []string{"write", "read", "semaphore"} {
		restock(t, 10)
		holder := begin(t.Context(), testLab.Addresses().Target, locking(what, "redis", "lost", 5*time.Second)+"&lease=1s"+map[string]string{"semaphore": "&qty=3"}[what])
		probe := "write"
		if what == "semaphore" {
			probe = what
		}
		await(t, locking(probe, "redis", "lost", 0)+"&wait=0s")
		restock(t, 10) // deletes the locks of the primitives
		if a := <-holder; a.HTTP != http.StatusServiceUnavailable || a.Outcome != "lost" {
			t.Errorf("%s: %+v, %v", what, a.reply, a.err)
		}
	}
}

// TestPrimitivesWithoutBackend stops a backend. Requests must get a 503 that names the backend, and
// a reset of the stock must return a warning. After a restart of the backend, the replicas must use
// the backend again without their own restart.
func TestPrimitivesWithoutBackend(t *testing.T) {
	for _, c := range []struct {
		backend, server, name string
		paths                 []string
	}{
		{"redis", "redis-1", "redis", []string{"read", "write", "semaphore", "latch", "countdown"}},
		{"zk", "zookeeper", "zookeeper", []string{
			"read", "write", "semaphore", "barrier/set", "barrier/wait", "barrier/remove",
			"double-barrier/enter", "double-barrier/leave", "counter", "counter?op=increment", "counter/events",
		}},
	} {
		restock(t, 10)
		if err := server(t, c.server).Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, replica := range labClients(t).Replicas { // the outcome of a request that meets the stop is unknown
			rigtest.Eventually(t, "a replica notices that "+c.server+" is gone", func() (bool, string) { return replica.Ready(t.Context()) != nil, "" })
		}
		answers := map[string]<-chan answer{}
		for _, what := range c.paths {
			query := "/test/" + what + "?backend=" + c.backend
			if strings.Contains(what, "?") {
				query = "/test/" + what + "&backend=" + c.backend
			}
			if strings.HasPrefix(what, "double") {
				query += "&owner=me"
			}
			answers[query] = begin(t.Context(), testLab.Addresses().Target, query)
		}
		for query, promised := range answers {
			if r := <-promised; r.HTTP != http.StatusServiceUnavailable || r.Outcome != "unavailable" || r.Backend != c.name {
				t.Errorf("%s without %s: %+v, %v", query, c.server, r.reply, r.err)
			}
		}
		r := ask(t, http.MethodPut, testLab.Addresses().Target, "/stock/1?count=10")
		if !strings.Contains(strings.Join(r.Warnings, "\n"), c.backend+" primitives: ") {
			t.Errorf("the reset without %s: %+v", c.server, r)
		}
		if err := server(t, c.server).Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, replica := range testLab.Addresses().Replicas {
			rigtest.Eventually(t, c.backend+" works again", func() (bool, string) {
				r := ask(t, http.MethodGet, replica, locking("write", c.backend, "again", 0))
				return r.HTTP == http.StatusOK, fmt.Sprintf("%+v", r)
			})
		}
	}
}
