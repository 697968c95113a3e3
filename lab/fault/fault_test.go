package fault_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/lab/fault"
	"oversell/lab/rig"
	"oversell/lab/rig/rigtest"
)

// lab is one lab that all tests share. Each test injects its faults, and heals them.
var lab *rig.Rig

func TestMain(m *testing.M) {
	rigtest.MainWith(m, config(), func(r *rig.Rig) { lab = r })
}

func config() rig.Config {
	return rig.Config{
		MySQL: true, Redis: 2, Zookeeper: 1, Etcd: 1, Replicas: 2, Token: "t0ken",
		Proxied: true, RedisReplica: true, Clocks: true,
	}
}

// inject injects a fault with a context that is cancelled at once, to check that the fault stays.
// It returns the heal, and also calls the heal at the end of the test.
func inject(t *testing.T, f fault.Fault) (heal func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	healing, err := f.Inject(ctx)
	cancel()
	if err != nil {
		t.Fatalf("%s of %s: %v", f.Name, f.Target, err)
	}
	heal = func() {
		if err := healing(context.WithoutCancel(ctx)); err != nil {
			t.Errorf("heal %s of %s: %v", f.Name, f.Target, err)
		}
	}
	t.Cleanup(heal) // a second call does no harm
	return heal
}

func server(t *testing.T, name string) *rig.Server {
	t.Helper()
	s, err := lab.Server(name)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func link(t *testing.T, from, to string) *rig.Link {
	t.Helper()
	l, err := lab.Link(from, to)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// client returns a client of a Redis. It sends a request once, waits for the answer without a
// limit, and has one connection.
func client(t *testing.T, addr string) *redis.Client {
	t.Helper()
	options, err := redis.ParseURL(lab.RedisURL(addr))
	must(t, err)
	options.MaxRetries, options.DialerRetries, options.PoolSize, options.ContextTimeoutEnabled = -1, 1, 1, true
	options.ReadTimeout, options.WriteTimeout = -1, -1
	c := redis.NewClient(options)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// moment is enough for an answer on loopback. A server that needs longer counts as silent.
const moment = 300 * time.Millisecond

// silent reports whether a ping gets neither an answer nor an error.
func silent(t *testing.T, c *redis.Client) bool {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), moment)
	defer cancel()
	var timeout net.Error
	return errors.As(c.Ping(ctx).Err(), &timeout) && timeout.Timeout()
}

func answers(t *testing.T, c *redis.Client) bool {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	return c.Ping(ctx).Err() == nil
}

// status returns the HTTP status of a replica's answer, or 0 if the replica does not answer.
func status(t *testing.T, replica, path string) int {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+server(t, replica).Addr()+path, nil)
	must(t, err)
	req.Close = true
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0
	}
	_ = res.Body.Close()
	return res.StatusCode
}

// eventually waits for a condition, for a minute at most.
func eventually(t *testing.T, otherwise string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(5 * time.Minute); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal(otherwise)
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestHealAfterFailedHeal repeats a heal that failed. When the repeated heal has succeeded, another
// heal does nothing.
func TestHealAfterFailedHeal(t *testing.T) {
	s := server(t, "redis-2")
	healing, err := fault.Kill(s).Inject(t.Context())
	must(t, err)
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if err := healing(over); err == nil {
		t.Fatal("a start without time went well")
	}
	must(t, healing(t.Context()))
	pid := s.PID()
	must(t, s.Stop(t.Context()))
	must(t, healing(t.Context()))
	if pid == 0 || s.PID() != 0 {
		t.Errorf("healed with pid %d, then stopped, then pid %d", pid, s.PID())
	}
	must(t, s.Start(t.Context()))
}

func TestNamesAndTargets(t *testing.T) {
	replica, redis1 := server(t, "replica-1"), server(t, "redis-1")
	l := link(t, "replica-1", "redis-1")
	for _, test := range []struct {
		fault        fault.Fault
		name, target string
	}{
		{fault.Stop(replica), "stop", "replica-1"},
		{fault.Kill(replica), "kill", "replica-1"},
		{fault.Restart(replica), "restart", "replica-1"},
		{fault.Cut(l), "cut from redis-1", "replica-1"},
		{fault.Reset(l), "reset by redis-1", "replica-1"},
		{fault.LostReplies(l), "lost reply of redis-1", "replica-1"},
		{fault.ClockJump(redis1, 2*time.Minute), "clock jumps by 2m0s", "redis-1"},
		{fault.Failover(lab), "failover", "redis-1"},
	} {
		if test.fault.Name != test.name || test.fault.Target != test.target {
			t.Errorf("%T: %q of %q, want %q of %q", test.fault, test.fault.Name, test.fault.Target, test.name, test.target)
		}
	}
}

// A lab with faults that were not healed closes without a wait for servers that can't answer.
func TestCloseWithoutHeal(t *testing.T) {
	r := rigtest.Start(t, config())
	of := func(name string) *rig.Server {
		s, err := r.Server(name)
		must(t, err)
		return s
	}
	cut, err := r.Link("replica-2", "mysql")
	must(t, err)
	for _, f := range []fault.Fault{
		fault.Stop(of("replica-1")),
		fault.Stop(of("zookeeper")),
		fault.Kill(of("redis-2")),
		fault.Cut(cut),
	} {
		_, err := f.Inject(t.Context())
		must(t, err)
	}
	var pids []int
	for _, s := range r.Servers() {
		if pid := s.PID(); pid != 0 {
			pids = append(pids, pid)
		}
	}
	if len(pids) != len(r.Servers())-1 {
		t.Fatalf("pids %v of %d servers", pids, len(r.Servers()))
	}
	must(t, r.Close()) // Close returns an error if it has to kill a server
	for _, pid := range pids {
		if alive(pid) {
			t.Errorf("process %d is alive", pid)
		}
	}
}
