package rig_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
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
	cfg.MySQL, cfg.Zookeeper, cfg.Redis = false, 0, 0
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
	t.Run("rejects in the format of the replicas", func(t *testing.T) { rejects(t, target) })
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
	t.Run("sends a rejected request elsewhere", func(t *testing.T) { sendsElsewhere(t, target) })
	t.Run("repeats a request that it did not send", func(t *testing.T) { repeatsUnsent(t, r, target) })
	t.Run("never repeats a request", func(t *testing.T) { neverRepeats(t, r, target) })
}

// rejects sends requests that nginx answers itself.
func rejects(t *testing.T, target string) {
	t.Helper()
	long := strings.Repeat("x", 100_000)
	for _, test := range []struct {
		method, path, header, body string
		want                       int
	}{
		{http.MethodPost, "/echoed", "", long, http.StatusRequestEntityTooLarge},
		{http.MethodPost, "/events", "", long, http.StatusRequestEntityTooLarge},
		{http.MethodPost, "/dash/", "", long, http.StatusRequestEntityTooLarge},
		{http.MethodGet, "/name?a=" + long[:9000], "", "", http.StatusRequestURITooLong},
		{http.MethodGet, "/name", long[:9000], "", http.StatusRequestHeaderFieldsTooLarge},
		{http.MethodTrace, "/name", "", "", http.StatusMethodNotAllowed},
	} {
		req, err := http.NewRequestWithContext(t.Context(), test.method, target+test.path, strings.NewReader(test.body))
		must(t, err)
		req.Header.Set("X-Long", test.header)
		res, err := http.DefaultClient.Do(req)
		must(t, err)
		var p struct {
			Title, Detail, Outcome string
			Status                 int
		}
		err = json.NewDecoder(res.Body).Decode(&p)
		must(t, errors.Join(err, res.Body.Close()))
		if res.StatusCode != test.want || p.Status != test.want || p.Title == "" || p.Detail == "" || p.Outcome != "bad_request" ||
			res.Header.Get("Content-Type") != "application/problem+json" {
			t.Errorf("%s %.20s: %s, %s, %+v, want %d", test.method, test.path, res.Status, res.Header.Get("Content-Type"), p, test.want)
		}
	}
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

// sendsElsewhere sends requests that replica-1 rejects, as a replica that stops does.
func sendsElsewhere(t *testing.T, target string) {
	t.Helper()
	for range 4 {
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			if status, text := call(t, method, target+"/rejected", "body"); status != http.StatusOK || !strings.HasSuffix(text, " body") {
				t.Errorf("%s: %d %s", method, status, text)
			}
		}
	}
}

// repeatsUnsent stops one replica after the other. nginx cannot connect to it, so another replica
// must get the request, whatever its method.
func repeatsUnsent(t *testing.T, r *rig.Rig, target string) {
	t.Helper()
	for _, name := range []string{"replica-1", "replica-2", "replica-3"} {
		s, err := r.Server(name)
		must(t, err)
		must(t, s.Stop(t.Context()))
		for range 4 {
			for _, method := range []string{http.MethodGet, http.MethodPost} {
				status, text := call(t, method, target+"/echoed", "body")
				if status != http.StatusOK || text != "body" {
					t.Errorf("%s without %s: %d %s", method, name, status, text)
				}
			}
		}
		must(t, s.Start(t.Context()))
		eventually(t, "nginx sends no requests to "+name, func() bool { return body(t, target+"/name") == name })
	}
}

// TestRollingRestart checks that the replicas are restarted one after the other, and that none is
// stopped before nginx sends requests to the one before it.
func TestRollingRestart(t *testing.T) {
	cfg := everything()
	cfg.MySQL, cfg.Zookeeper, cfg.Etcd, cfg.Redis = false, 0, 0, 0
	r := rigtest.Start(t, cfg)
	before := map[string]int{}
	for _, s := range r.Servers() {
		before[s.Name()] = s.PID()
	}
	var names []string
	must(t, r.RollingRestart(t.Context(), func(s *rig.Server) {
		names = append(names, s.Name())
		if s.PID() == 0 || s.PID() == before[s.Name()] {
			t.Errorf("%s was not restarted", s.Name())
		}
	}))
	if got := strings.Join(names, " "); got != "replica-1 replica-2 replica-3" {
		t.Errorf("restarted %s", got)
	}
	// A replica that has died is an error, and the others stay as they are.
	s, err := r.Server("replica-1")
	must(t, err)
	s.Kill()
	if err := r.RollingRestart(t.Context(), func(*rig.Server) {}); err == nil || !strings.Contains(err.Error(), "replica-1: it is not running") {
		t.Errorf("got %v", err)
	}
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
	// A killed replica closes its connections after its port, so the dead ones refuse requests now.
	alive := 0
	for _, replica := range r.Addresses().Replicas {
		if res, err := http.Get(replica + "/name"); err == nil { //nolint:noctx // short
			_ = res.Body.Close()
			alive++
		}
	}
	if alive != 2 {
		t.Errorf("%d replicas are left, want 2", alive)
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

// call sends a request with a body, and returns the answer.
func call(t *testing.T, method, url, text string) (status int, answer string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(text))
	must(t, err)
	res, err := http.DefaultClient.Do(req)
	must(t, err)
	defer func() { _ = res.Body.Close() }()
	got, err := io.ReadAll(res.Body)
	must(t, err)
	return res.StatusCode, string(got)
}
