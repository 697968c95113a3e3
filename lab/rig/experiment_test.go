package rig_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/redis/go-redis/v9"

	"oversell/lab/rig"
	"oversell/lab/rig/rigtest"
)

// experiments returns a lab with all settings for experiments, and replicas of this test binary.
func experiments() rig.Config {
	cfg := everything()
	cfg.MySQL, cfg.Nginx, cfg.Replicas = false, false, 2
	cfg.Zookeeper, cfg.Etcd, cfg.RedisReplica, cfg.Clocks, cfg.Proxied = 3, 3, true, true, true
	return cfg
}

func named(t *testing.T, r *rig.Rig, name string) *rig.Server {
	t.Helper()
	s, err := r.Server(name)
	must(t, err)
	return s
}

// TestPlainLab checks that a lab without the settings for experiments has no links, no clocks of
// its own and no extra servers.
func TestPlainLab(t *testing.T) {
	cfg := everything()
	cfg.MySQL, cfg.Replicas = false, 1
	r := rigtest.Start(t, cfg)
	var names []string
	for _, s := range r.Servers() {
		names = append(names, s.Name())
	}
	if want := []string{"redis-1", "redis-2", "zookeeper", "etcd", "nginx", "replica-1"}; !slices.Equal(names, want) {
		t.Errorf("servers %v, want %v", names, want)
	}
	if n := len(r.Links()); n != 0 {
		t.Errorf("%d links", n)
	}
	if _, err := r.Link("replica-1", "redis-1"); err == nil || !strings.Contains(err.Error(), "does not exist") {
		t.Errorf("a link: %v", err)
	}
	if err := named(t, r, "redis-1").SetClock(time.Minute); err == nil {
		t.Error("a Redis with a clock of its own")
	}
	env := body(t, r.Addresses().Target+"/env")
	for _, addr := range slices.Concat(r.Addresses().Redis, r.Addresses().Zookeeper, r.Addresses().Etcd) {
		if !strings.Contains(env, addr) {
			t.Errorf("the replica does not use %s: %s", addr, env)
		}
	}
}

// TestProxied checks that each replica uses its own link to each backend, and not the backend's
// address. Rig.Addresses must still return the servers' own addresses.
func TestProxied(t *testing.T) {
	cfg := experiments()
	cfg.Zookeeper, cfg.Etcd, cfg.Clocks = 1, 1, false
	r := rigtest.Start(t, cfg)
	for i, replica := range r.Addresses().Replicas {
		from := fmt.Sprintf("replica-%d", i+1)
		env := body(t, replica+"/env")
		for _, to := range []string{"redis-1", "redis-2", "zookeeper"} {
			l, err := r.Link(from, to)
			must(t, err)
			if l.From() != from || l.To() != to || listens(l.Addr()) != nil {
				t.Errorf("%s: from %s to %s on %s", l, l.From(), l.To(), l.Addr())
			}
			direct := named(t, r, to).Addr()
			if !strings.Contains(env, l.Addr()) || strings.Contains(env, direct) {
				t.Errorf("%s is to use %s, not %s: %s", from, l.Addr(), direct, env)
			}
		}
		if _, err := r.Link(from, "redis-1-replica"); err == nil || !strings.Contains(err.Error(), "did you mean") {
			t.Errorf("a link to the replica of Redis: %v", err)
		}
	}
	addrs := r.Addresses()
	if want := named(t, r, "redis-1").RedisURL(); len(addrs.Redis) != 2 || addrs.Redis[0] != want {
		t.Errorf("the lab has %v, want two, the first %s", addrs.Redis, want)
	}
	setUpstream(t, r)
	must(t, r.Close())
	for _, l := range r.Links() {
		if listens(l.Addr()) == nil {
			t.Errorf("%s still listens", l)
		}
	}
}

// setUpstream checks that a link leads to the server that SetUpstream names, and that Restore does not
// change this.
func setUpstream(t *testing.T, r *rig.Rig) {
	t.Helper()
	l, err := r.Link("replica-1", "redis-1")
	must(t, err)
	port := func() (port string) {
		withRedis(t, r.RedisURL(l.Addr()), func(c *redis.Client) error {
			text, err := c.Info(t.Context(), "server").Result()
			_, port, _ = strings.Cut(text, "tcp_port:")
			port, _, _ = strings.Cut(port, "\r\n")
			return err
		})
		return port
	}
	for _, name := range []string{"redis-1", "redis-2", "redis-1"} {
		s := named(t, r, name)
		must(t, l.SetUpstream(s.Addr()))
		if got := port(); !strings.HasSuffix(s.Addr(), ":"+got) {
			t.Errorf("set to %s, %s, the link leads to port %s", name, s.Addr(), got)
		}
	}
	must(t, l.SetUpstream(named(t, r, "redis-2").Addr()))
	must(t, l.Restore())
	must(t, l.Restore())
	if got := port(); !strings.HasSuffix(named(t, r, "redis-2").Addr(), ":"+got) {
		t.Errorf("Restore has moved the link back, to port %s", got)
	}
}

// TestEnsemble checks that an ensemble of three ZooKeeper servers serves while two of them run, and
// not while one runs. After both killed servers have started again, all three must have their data.
func TestEnsemble(t *testing.T) {
	rigtest.Nightly(t, "TestEveryHazard of ./lab/experiment, with the hazard minority-loss")
	r := rigtest.Start(t, rig.Config{Zookeeper: 3})
	addrs := r.Addresses().Zookeeper
	if len(addrs) != 3 {
		t.Fatalf("addresses %v", addrs)
	}
	zkWrite(t, addrs[:1])
	eventually(t, "the third server lacks a write to the first", func() bool { return zkKept(t, addrs[2:]) })
	one, three := named(t, r, "zookeeper-1"), named(t, r, "zookeeper-3")
	three.Kill() // the leader: the highest number is elected
	eventually(t, "two of three don't serve", func() bool { return zkServes(t, addrs[:2]) })
	one.Kill()
	eventually(t, "one of three serves", func() bool { return !zkServes(t, addrs[1:2]) })
	must(t, one.Start(t.Context()))
	must(t, three.Start(t.Context()))
	for i := range addrs {
		eventually(t, addrs[i]+" has lost its data", func() bool { return zkKept(t, addrs[i:i+1]) })
	}
}

// zkServes reports whether one of the servers grants a session within a second.
func zkServes(t *testing.T, servers []string) bool {
	t.Helper()
	conn, events, err := zk.Connect(servers, 2*time.Second, zk.WithLogInfo(false), zk.WithLogger(silence{}))
	must(t, err)
	defer conn.Close()
	for timeout := time.After(time.Second); ; {
		select {
		case e := <-events:
			if e.State == zk.StateHasSession {
				return true
			}
		case <-timeout:
			return false
		}
	}
}

type silence struct{}

func (silence) Printf(string, ...any) {}

// TestPause also stops a paused server, which does not handle SIGTERM. Stop must kill it when ctx ends, and
// return an error.
func TestPause(t *testing.T) {
	r := rigtest.Start(t, rig.Config{Redis: 1})
	s := r.Servers()[0]
	must(t, s.Pause())
	must(t, s.Pause())
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.PID()))
	if err == nil && !strings.Contains(string(stat), ") T ") {
		t.Errorf("it runs: %s", stat)
	}
	must(t, s.Resume())
	must(t, s.Resume())
	redisWrite(t, r.Addresses().Redis[0])

	must(t, s.Pause())
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := s.Stop(ctx); err == nil || !strings.Contains(err.Error(), "redis-1") || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("stop of a paused server: %v", err)
	}
	if s.PID() != 0 {
		t.Error("it still runs")
	}
	must(t, s.Resume())
	if err := s.Pause(); err == nil || !strings.Contains(err.Error(), "is not running") {
		t.Errorf("pause of a dead server: %v", err)
	}
}

// harm pauses three servers and cuts two links. It does not end these faults.
func harm(r *rig.Rig) error {
	var errs []error
	for _, name := range []string{"replica-1", "redis-2", "zookeeper-2"} {
		s, err := r.Server(name)
		if err == nil {
			err = s.Pause()
		}
		errs = append(errs, err)
	}
	for _, to := range []string{"redis-1", "zookeeper-1"} {
		l, err := r.Link("replica-2", to)
		if err == nil {
			err = l.Cut()
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
