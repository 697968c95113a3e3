package rig_test

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"oversell/lab/rig"
	"oversell/lab/rig/rigtest"
)

// TestNginx checks the behaviour of nginx on which the lab depends, with the configuration file
// that docker-compose mounts.
func TestNginx(t *testing.T) {
	cfg := everything()
	cfg.MySQL, cfg.Zookeeper, cfg.Redis = false, false, 0
	r := rigtest.Start(t, cfg)
	target := r.Addresses().Target

	t.Run("takes turns", func(t *testing.T) {
		seen := map[string]bool{}
		for range 12 {
			seen[body(t, target+"/name")] = true
		}
		if len(seen) != 3 {
			t.Errorf("answers from %v, want three replicas", seen)
		}
	})
	t.Run("names the client", func(t *testing.T) {
		if got := body(t, target+"/from"); got != "127.0.0.1" {
			t.Errorf("X-Forwarded-For %q", got)
		}
	})
	t.Run("takes a large body", func(t *testing.T) { // nginx stores it in a temporary file
		res, err := http.Post(target+"/length", "text/plain", strings.NewReader(strings.Repeat("x", 60000))) //nolint:noctx // short
		must(t, err)
		defer func() { _ = res.Body.Close() }()
		if text, _ := io.ReadAll(res.Body); string(text) != "60000" {
			t.Errorf("%s %s", res.Status, text)
		}
	})
	t.Run("passes events on at once", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		res := request(t, ctx, target+"/events")
		defer func() { _ = res.Body.Close() }()
		if line, err := bufio.NewReader(res.Body).ReadString('\n'); line != "data: hello\n" {
			t.Errorf("read %q, %v", line, err)
		}
	})
	t.Run("tells that a client hung up", func(t *testing.T) { tellsHangUp(t, r.Addresses()) })
	t.Run("never repeats a request", func(t *testing.T) { neverRepeats(t, r, target) })
}

// tellsHangUp cancels a request while a replica handles it. nginx must tell the replica, so that a
// real replica can remove the request from the queue of its lock.
func tellsHangUp(t *testing.T, addrs rig.Addresses) {
	t.Helper()
	sum := func(route string) (n int) {
		for _, replica := range addrs.Replicas {
			n += atoi(t, body(t, replica+route))
		}
		return n
	}
	ctx, hangUp := context.WithCancel(t.Context())
	defer hangUp()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, addrs.Target+"/wait", nil)
	must(t, err)
	ended := make(chan error)
	go func() {
		_, err := http.DefaultClient.Do(req) //nolint:bodyclose // there is none
		ended <- err
	}()
	eventually(t, "no replica got the request", func() bool { return sum("/waiting") == 1 })
	hangUp()
	if err := <-ended; err == nil {
		t.Error("the request had an answer")
	}
	eventually(t, "the replica did not notice the end of the request", func() bool { return sum("/hung-up") == 1 })
}

// neverRepeats kills a replica during a request: nginx must not send it to another replica.
func neverRepeats(t *testing.T, r *rig.Rig, target string) {
	t.Helper()
	res := request(t, t.Context(), target+"/die")
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	must(t, err)
	if res.StatusCode != http.StatusBadGateway || res.Header.Get("Content-Type") != "application/problem+json" ||
		!strings.Contains(string(text), `"outcome":"unknown"`) {
		t.Errorf("%s, %s: %s", res.Status, res.Header.Get("Content-Type"), text)
	}
	running := 0
	eventually(t, "the replica lives", func() bool {
		running = 0
		for _, s := range r.Servers() {
			if strings.HasPrefix(s.Name(), "replica") && s.PID() != 0 {
				running++
			}
		}
		return running < 3
	})
	if running != 2 {
		t.Errorf("%d replicas are left, want 2", running)
	}
}

func request(t *testing.T, ctx context.Context, url string) *http.Response { //nolint:revive // t first, as everywhere
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	must(t, err)
	res, err := http.DefaultClient.Do(req)
	must(t, err)
	return res
}
