package rig_test

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"oversell/lab/rig"
	"oversell/lab/rig/rigtest"
)

// TestServersStopAndStart stops, starts, kills and starts each server of one rig, and checks
// which of them keep their data.
func TestServersStopAndStart(t *testing.T) {
	r := rigtest.Start(t, everything())
	addrs := r.Addresses()
	for _, test := range []struct {
		server string
		write  func(t *testing.T)
		kept   func(t *testing.T) bool
		keeps  bool
	}{
		{"mysql", func(t *testing.T) { mysqlWrite(t, addrs.MySQL) }, func(t *testing.T) bool { return mysqlKept(t, addrs.MySQL) }, true},
		{"redis-2", func(t *testing.T) { redisWrite(t, addrs.Redis[1]) }, func(t *testing.T) bool { return redisKept(t, addrs.Redis[1]) }, false},
		{"zookeeper", func(t *testing.T) { zkWrite(t, addrs.Zookeeper) }, func(t *testing.T) bool { return zkKept(t, addrs.Zookeeper) }, true},
		{"nginx", func(*testing.T) {}, func(t *testing.T) bool { return body(t, addrs.Target+"/token") == "t0ken" }, true},
		{"replica-2", func(*testing.T) {}, func(t *testing.T) bool { return body(t, addrs.Replicas[1]+"/name") == "replica-2" }, true},
	} {
		t.Run(test.server, func(t *testing.T) {
			s, err := r.Server(test.server)
			if err != nil {
				t.Fatal(err)
			}
			stops := map[string]func(){
				"stop": func() { must(t, s.Stop(t.Context())) },
				"kill": s.Kill,
			}
			for name, stop := range stops {
				test.write(t)
				addr, pid := s.Addr(), s.PID()
				if pid == 0 || listens(addr) != nil {
					t.Fatalf("%s does not run: pid %d", test.server, pid)
				}
				stop()
				if s.PID() != 0 || listens(addr) == nil || alive(pid) {
					t.Fatalf("after %s it still runs", name)
				}
				must(t, s.Start(t.Context()))
				if s.Addr() != addr || s.PID() == pid || s.PID() == 0 {
					t.Fatalf("after %s and start: %s, pid %d; before: %s, pid %d", name, s.Addr(), s.PID(), addr, pid)
				}
				if got := test.kept(t); got != test.keeps {
					t.Errorf("after %s and start its data are there: %t, want %t", name, got, test.keeps)
				}
			}
		})
	}
}

func TestStartAndStopTwice(t *testing.T) {
	r := rigtest.Start(t, rig.Config{Redis: 1})
	s := r.Servers()[0]
	if err := s.Start(t.Context()); err == nil || !strings.Contains(err.Error(), "is running already") {
		t.Errorf("start of a running server: %v", err)
	}
	must(t, s.Stop(t.Context()))
	must(t, s.Stop(t.Context()))
	s.Kill()
	must(t, r.Close())
	must(t, r.Close())
	if err := s.Start(t.Context()); err == nil || !strings.Contains(err.Error(), "closed") {
		t.Errorf("start after the rig was closed: %v", err)
	}
	if _, err := r.Server("mysql"); err == nil || !strings.Contains(err.Error(), "redis-1") {
		t.Errorf("unknown server: %v", err)
	}
}

// TestTwoRigs checks that two rigs have no port and no folder in common. A third rig prefers the
// port of a stopped server of the first rig, and must get this port only when the first rig is closed.
func TestTwoRigs(t *testing.T) {
	cfg := everything()
	cfg.MySQL, cfg.Zookeeper = false, 0
	var rigs [2]*rig.Rig
	var starting sync.WaitGroup
	for i := range rigs {
		starting.Go(func() { rigs[i] = rigtest.Start(t, cfg) })
	}
	starting.Wait()
	if t.Failed() {
		return
	}
	seen := map[string]bool{rigs[0].Dir(): true}
	for _, s := range rigs[0].Servers() {
		seen[s.Addr()] = true
	}
	if seen[rigs[1].Dir()] {
		t.Error("both have the same folder")
	}
	for _, s := range rigs[1].Servers() {
		if seen[s.Addr()] {
			t.Errorf("both have %s", s.Addr())
		}
	}
	// No other rig takes the port of a stopped server.
	s := rigs[0].Servers()[0]
	_, port, _ := net.SplitHostPort(s.Addr())
	must(t, s.Stop(t.Context()))
	cfg.Nginx, cfg.Replicas = true, 1
	cfg.Ports.Nginx = atoi(t, port)
	if third := rigtest.Start(t, cfg); third.Addresses().Target == "http://"+s.Addr() {
		t.Errorf("a third rig took %s, which belongs to a stopped server", s.Addr())
	}
	must(t, s.Start(t.Context()))
	must(t, rigs[0].Close())
	if third := rigtest.Start(t, cfg); third.Addresses().Target != "http://"+s.Addr() {
		t.Errorf("nginx at %s, want the free port of %s", third.Addresses().Target, s.Addr())
	}
}

func TestMissingPrograms(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	t.Setenv("ZOOKEEPER_JARS", "")
	_, err := rig.Start(t.Context(), rig.Config{Redis: 1})
	if !errors.Is(err, rig.ErrMissing) {
		t.Fatalf("error %v, want ErrMissing", err)
	}
	for _, want := range []string{"redis-server", "make servers"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not say %q: %v", want, err)
		}
	}
}

// TestOnExit checks that a rig reports the unexpected death of a server, and not a Stop. Of nginx
// it kills only the master: nginx's workers must end, too.
func TestOnExit(t *testing.T) {
	exits := make(chan rig.Exit, 10)
	cfg := everything()
	cfg.MySQL, cfg.Zookeeper, cfg.OnExit = false, 0, func(e rig.Exit) { exits <- e }
	r := rigtest.Start(t, cfg)
	for _, name := range []string{"redis-1", "nginx", "replica-3"} {
		s, err := r.Server(name)
		must(t, err)
		must(t, s.Stop(t.Context()))
		must(t, s.Start(t.Context()))
		must(t, syscall.Kill(s.PID(), syscall.SIGKILL))
		select {
		case e := <-exits:
			if e.Name != name || e.Status != "signal: killed" {
				t.Errorf("reported %+v, want %s killed", e, name)
			}
		case <-time.After(5 * time.Minute):
			t.Fatalf("%s died, and the rig did not report it", name)
		}
		if s.PID() != 0 || listens(s.Addr()) == nil {
			t.Errorf("%s still serves", name)
		}
		must(t, s.Start(t.Context()))
	}
}

// TestRestart: a replica that is killed starts again, but no other server, and not a replica that the rig stops.
func TestRestart(t *testing.T) {
	cfg, exits := everything(), make(chan rig.Exit, 10)
	cfg.MySQL, cfg.Zookeeper, cfg.Etcd, cfg.Nginx, cfg.Replicas = false, 0, 0, false, 2
	cfg.Restart, cfg.OnExit = true, func(e rig.Exit) { exits <- e }
	r := rigtest.Start(t, cfg)
	servers := map[string]*rig.Server{}
	for _, s := range r.Servers() {
		servers[s.Name()] = s
	}
	killed, stopped := servers["replica-1"].PID(), servers["replica-2"]
	for _, name := range []string{"redis-1", "replica-1"} {
		must(t, syscall.Kill(servers[name].PID(), syscall.SIGKILL))
		if e := <-exits; e.Name != name {
			t.Errorf("reported %+v, want %s", e, name)
		}
	}
	rigtest.Eventually(t, "the replica serves again", func() (bool, string) {
		pid := servers["replica-1"].PID()
		return pid != 0 && pid != killed && listens(servers["replica-1"].Addr()) == nil, fmt.Sprint(pid)
	})
	must(t, stopped.Stop(t.Context()))
	if stopped.PID() != 0 || servers["redis-1"].PID() != 0 || len(exits) > 0 {
		t.Errorf("replica-2 or redis-1 runs again, or one more server has died: %d", len(exits))
	}
}
