package stepper

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"oversell/lab/rig"
)

// TestSlowReplica has a replica as on a busy machine: a step takes a second, and every other answer
// takes longer, too. The step must not count as a wait for the lock.
func TestSlowReplica(t *testing.T) {
	t.Parallel()
	addrs := testLab.Addresses()
	addrs.Replicas = slices.Clone(addrs.Replicas)
	to, err := url.Parse(addrs.Replicas[B])
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(to)
	slow := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/check/") {
			time.Sleep(time.Second)
		}
		time.Sleep(20 * time.Millisecond)
		proxy.ServeHTTP(w, r)
	}))
	defer slow.Close()
	addrs.Replicas[B] = slow.URL

	l, err := Open(rig.At(addrs), "redis")
	if err != nil {
		t.Fatal(err)
	}
	r, err := l.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	for _, client := range []Client{A, B} {
		if err := r.Go(t.Context(), client); err != nil {
			t.Fatal(err)
		}
	}
	if len(r.Log) != 2 || r.State(A) != Stopped || r.State(B) != Stopped {
		t.Errorf("A %v, B %v: %+v", r.State(A), r.State(B), r.Log)
	}
}
