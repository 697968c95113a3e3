package handlers_test

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"net/http"
	"net/url"
	"runtime"
	"strings"
	"testing"
	"time"

	"oversell/api"
	"oversell/lab/rig"
	"oversell/lab/rig/rigtest"
)

// testLab is a lab with all servers. The tests that use it run one after the other, because they stop
// servers, or set the stock, which deletes all names. Then the parallel tests run: they use only names
// of their own, or no server.
var testLab *rig.Rig

func TestMain(m *testing.M) {
	// The parallel tests mostly wait, so two at a time would be too few on two processors.
	_ = flag.Set("test.parallel", fmt.Sprint(max(16, runtime.GOMAXPROCS(0)))) // of a valid name
	rigtest.MainWith(m, rig.FullLab("", labToken), func(r *rig.Rig) { testLab = r })
}

var (
	all  = []string{"none", "mutex", "for-update", "version", "db-row", "redis", "redlock", "zk"}
	safe = all[2:]
)

// reply is an answer of the service.
type reply struct {
	HTTP       int      `json:"-"`
	RetryAfter string   `json:"-"`
	Outcome    string   `json:"outcome"`
	Detail     string   `json:"detail"`
	Parameter  string   `json:"parameter"`
	Allowed    string   `json:"allowed"`
	Backend    string   `json:"backend"`
	Replica    string   `json:"replica"`
	Remaining  int      `json:"remaining"`
	Count      int      `json:"count"`
	Also       []string `json:"also"`
	Retries    int      `json:"retries"`
	Fence      int64    `json:"fence"`
	Warning    string   `json:"warning"`

	// The following fields are in the answers of the primitives, such as semaphores and counters.
	Name       string   `json:"name"`
	WaitedMS   float64  `json:"waited_ms"`
	HeldMS     float64  `json:"held_ms"`
	Then       string   `json:"then"`
	Downgraded bool     `json:"downgraded"`
	Set        bool     `json:"set"`
	Left       int      `json:"left"`
	Value      int64    `json:"value"`
	Version    int64    `json:"version"`
	Succeeded  bool     `json:"succeeded"`
	Before     int64    `json:"before"`
	After      int64    `json:"after"`
	Warnings   []string `json:"warnings"`

	// The following fields are in the answers of the scenarios, such as the order of a coupon.
	Order int64     `json:"order"`
	Made  time.Time `json:"made"`
}

func exchange(ctx context.Context, method, base, path string) (reply, error) {
	var r reply
	status, header, err := rigtest.Send(ctx, method, base+path, labToken, &r)
	r.HTTP, r.RetryAfter = status, header.Get("Retry-After")
	return r, err
}

func ask(t *testing.T, method, base, path string) reply {
	t.Helper()
	r, err := exchange(t.Context(), method, base, path)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// buy sends one sale through nginx. params are parameters such as wait=1s.
func buy(t *testing.T, strategy string, params ...string) reply {
	t.Helper()
	return ask(t, http.MethodGet, testLab.Addresses().Target, checkLock(strategy, params...))
}

func checkLock(strategy string, params ...string) string {
	return "/check/lock?strategy=" + url.QueryEscape(strategy) + "&" + strings.Join(params, "&")
}

// restock sets the stock of product 1, through nginx.
func restock(t *testing.T, count int) {
	t.Helper()
	r := ask(t, http.MethodPut, testLab.Addresses().Target, fmt.Sprintf("/stock/1?count=%d", count))
	if r.HTTP != http.StatusOK || r.Count != count {
		t.Fatalf("reset to %d: %+v", count, r)
	}
}

func left(t *testing.T) int {
	t.Helper()
	return ask(t, http.MethodGet, testLab.Addresses().Target, "/stock/1").Count
}

// server returns the lab's server with this name.
func server(t *testing.T, name string) *rig.Server {
	t.Helper()
	s, err := testLab.Server(name)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// clients are the clients for testLab: Target for nginx, and one for each replica.
type clients struct {
	Target   api.Client
	Replicas []api.Client
}

// labClients returns the clients for testLab. They use at most 200 connections to each server.
func labClients(t *testing.T) clients {
	t.Helper()
	const conns = 200
	client := &http.Client{
		Transport: &http.Transport{MaxIdleConnsPerHost: conns, MaxConnsPerHost: conns},
		Timeout:   time.Minute,
	}
	t.Cleanup(client.CloseIdleConnections)
	at := func(base string) api.Client { return api.Client{Base: base, Token: labToken, HTTP: client} }
	c := clients{Target: at(testLab.Addresses().Target)}
	for _, base := range testLab.Addresses().Replicas {
		c.Replicas = append(c.Replicas, at(base))
	}
	return c
}

// awaitPaused waits until n requests are paused at failpoints of the replica.
func awaitPaused(t *testing.T, replica api.Client, n int) {
	t.Helper()
	rigtest.Eventually(t, fmt.Sprintf("%d requests are paused", n), func() (bool, string) {
		paused, err := replica.Paused(t.Context())
		return len(paused) == n, fmt.Sprintf("%+v, %v", paused, err)
	})
}

// data returns the data of the next event of a stream.
func data(t *testing.T, lines *bufio.Scanner) string {
	t.Helper()
	for lines.Scan() {
		if text, ok := strings.CutPrefix(lines.Text(), "data:"); ok {
			return text
		}
	}
	t.Fatalf("the stream has ended: %v", lines.Err())
	return ""
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
