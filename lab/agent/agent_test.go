package agent

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"oversell/lab/load"
)

const target = "http://127.0.0.1:1" // nothing listens there, and no test of this file sends a request

func config() Config {
	return Config{Target: target, Token: "secret", Version: "v1", MaxTime: time.Minute, Log: func(string) {}}
}

func newAgent(t *testing.T, c Config) *Agent {
	t.Helper()
	a, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// listen starts an agent on loopback, until the test ends.
func listen(t *testing.T) (address string) {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	a := newAgent(t, config())
	go func() { served <- a.Serve(ctx, listener) }()
	t.Cleanup(func() {
		stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return listener.Addr().String()
}

func TestNewNeedsATokenAndATarget(t *testing.T) {
	for want, change := range map[string]func(*Config){
		"--token is missing":     func(c *Config) { c.Token = "" },
		"must be a URL":          func(c *Config) { c.Target = "file:///etc/passwd" },
		"must be above 0s":       func(c *Config) { c.MaxTime = 0 },
		`target "http://u:p@h":`: func(c *Config) { c.Target = "http://u:p@h" },
	} {
		c := config()
		change(&c)
		if _, err := New(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

func TestAgentRefuses(t *testing.T) {
	address := listen(t)
	for want, greet := range map[string]hello{
		"the token is wrong": {Version: "v1", Token: "secre", Target: target},
		`it has version "v1" of oversell, and this program has "v2"`:   {Version: "v2", Token: "secret", Target: target},
		"it sends requests only to http://127.0.0.1:1, not to http://": {Version: "v1", Token: "secret", Target: "http://10.0.0.1:80"},
	} {
		_, err := Dial(t.Context(), []string{address}, greet.Version, greet.Token, greet.Target)
		if err == nil || !strings.Contains(err.Error(), "agent "+address+": "+want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	c, err := Dial(t.Context(), []string{address}, "v1", "secret", "127.0.0.1:1/") // the same target
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Dial(t.Context(), []string{address}, "v1", "secret", target); err == nil || !strings.Contains(err.Error(), "already works for another coordinator, 127.0.0.1:") {
		t.Errorf("a second coordinator: %v", err)
	}
	c.Close()
	c, err = Dial(t.Context(), []string{address}, "v1", "secret", target)
	if err != nil {
		t.Fatalf("after the first coordinator: %v", err)
	}
	c.Close()
}

// TestStrangersLearnNothing sends bytes that no coordinator sends, to a connection each.
func TestStrangersLearnNothing(t *testing.T) {
	address := listen(t)
	for name, text := range map[string]string{
		"a browser":    "POST / HTTP/1.1\r\nHost: agent\r\n\r\n{\"plan\":{}}\n",
		"not JSON":     "\x00\x01\x02\n",
		"a long line":  strings.Repeat("x", 2*maxRequest),
		"only a plan":  `{"plan":{"Clients":1},"start":0}` + "\n",
		"no token":     `{"hello":{"version":"v1"}}` + "\n",
		"a null token": `{"hello":{"version":"v1","token":null,"target":"` + target + `"}}` + "\n",
	} {
		socket, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = socket.Write([]byte(text)) // the agent may close the connection before the end
		lines := bufio.NewScanner(socket)
		for lines.Scan() {
			var a answer
			if err := json.Unmarshal(lines.Bytes(), &a); err != nil || !strings.HasPrefix(a.Refused, "the token is wrong") {
				t.Errorf("%s: got %s", name, lines.Text())
			}
		}
		_ = socket.Close()
	}
}

func TestAgentBoundsThePlan(t *testing.T) {
	s := &session{agent: newAgent(t, config())}
	for want, change := range map[string]func(*load.Plan){
		"clients 10001: must be":              func(p *load.Plan) { p.Clients = 10_001 },
		"more than 1000000 requests":          func(p *load.Plan) { p.Loops = 1_000_000 },
		"hold 1h0m0s: must be":                func(p *load.Plan) { p.Hold = time.Hour },
		"longer than the agent's --max-time":  func(p *load.Plan) { p.RampUp = time.Hour },
		"20 requests at 6/m take longer than": func(p *load.Plan) { p.Rate = 0.1 },
	} {
		p := plan(2, 10)
		change(&p)
		if err := s.prepare(p); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
		if s.plan != nil {
			t.Fatalf("%s: the plan was kept", want)
		}
	}
	p := plan(2, 10)
	p.Target, p.Path, p.Timeout = "http://10.0.0.1:80", "/admin", 24*time.Hour
	if err := s.prepare(p); err != nil {
		t.Fatal(err)
	}
	if s.plan.Target != target || s.plan.Path != "" || s.plan.Timeout != 0 {
		t.Errorf("the agent would send %+v", s.plan)
	}
}

// TestSilentCoordinator checks that a run ends when nothing is received from its coordinator, as after
// a power failure, which closes no connection. The clock of the test is simulated.
func TestSilentCoordinator(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		coordinator, socket := net.Pipe()
		a := newAgent(t, config())
		served := make(chan time.Duration)
		began := time.Now()
		go func() {
			a.serve(t.Context(), socket)
			served <- time.Since(began)
		}()
		go func() {
			_, _ = bufio.NewReader(coordinator).WriteTo(io.Discard) // until the agent closes the connection
		}()
		out := json.NewEncoder(coordinator)
		later := 50 * time.Second // the run would begin then
		p := plan(1, 1)
		for _, line := range []request{{Hello: &hello{Version: "v1", Token: "secret", Target: target}}, {Plan: &p}, {Start: &later}} {
			if err := out.Encode(line); err != nil {
				t.Fatal(err)
			}
		}
		if took := <-served; took < silence || took >= later {
			t.Errorf("the agent waited %v for its coordinator", took)
		}
		if len(a.occupied) != 0 {
			t.Error("the agent is still occupied")
		}
	})
}
