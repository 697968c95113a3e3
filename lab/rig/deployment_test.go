package rig_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/lab/backend"
	"oversell/lab/rig"
	"oversell/lab/rig/rigtest"
)

// TestDelay checks that an answer over a link takes longer by the delay, and not without the link.
func TestDelay(t *testing.T) {
	const delay = 50 * time.Millisecond
	cfg := everything()
	cfg.MySQL, cfg.Zookeeper, cfg.Etcd, cfg.Nginx, cfg.Replicas = false, 0, 0, false, 1
	cfg.Proxied, cfg.Delay = true, delay
	r := rigtest.Start(t, cfg)
	for i, name := range []string{"redis-1", "redis-2"} {
		l, err := r.Link("replica-1", name)
		must(t, err)
		if direct, over := quickestPing(t, r.Addresses().Redis[i]), quickestPing(t, r.RedisURL(l.Addr())); over < delay || direct >= over {
			t.Errorf("%s: %s, and %s over a link with a delay of %s", name, direct, over, delay)
		}
		must(t, l.Restore())
		if over := quickestPing(t, r.RedisURL(l.Addr())); over >= delay {
			t.Errorf("%s: %s after Restore", name, over)
		}
	}
}

// quickestPing returns the shortest time of several, which other processes have disturbed least.
func quickestPing(t *testing.T, url string) time.Duration {
	t.Helper()
	shortest := time.Minute
	withRedis(t, url, func(c *redis.Client) error {
		for range 10 {
			began := time.Now()
			if err := c.Ping(t.Context()).Err(); err != nil {
				return err
			}
			shortest = min(shortest, time.Since(began))
		}
		return nil
	})
	return shortest
}

// TestFsync checks that the servers run with the settings of Config.Fsync, and not without it.
func TestFsync(t *testing.T) {
	rigtest.Nightly(t, "TestRunDeployment of ./cli, which starts a lab with --fsync")
	for _, fsync := range []bool{false, true} {
		t.Run(strconv.FormatBool(fsync), func(t *testing.T) {
			cfg := everything()
			cfg.Nginx, cfg.Replicas, cfg.Fsync = false, 0, fsync
			r := rigtest.Start(t, cfg)
			flush, err := backend.MySQLValue(t.Context(), r.Addresses().MySQL, "SELECT @@innodb_flush_log_at_trx_commit")
			if want := map[bool]string{false: "2", true: "1"}[fsync]; err != nil || flush != want {
				t.Errorf("MySQL: innodb_flush_log_at_trx_commit is %s, want %s: %v", flush, want, err)
			}
			withRedis(t, r.Addresses().Redis[1], func(c *redis.Client) error {
				text, err := c.Info(t.Context(), "persistence").Result()
				if want := fmt.Sprintf("aof_enabled:%d\r\n", map[bool]int{true: 1}[fsync]); !strings.Contains(text, want) {
					t.Errorf("Redis: no %q in %s", want, text)
				}
				return err
			})
			conf, err := os.ReadFile(filepath.Join(r.Dir(), "redis-2", "redis.conf")) // CONFIG GET is off
			must(t, err)
			if always := strings.Contains(string(conf), "\nappendfsync always\n"); always != fsync {
				t.Errorf("Redis: appendfsync always: %t", always)
			}
			if force := strings.Contains(commandLine(t, r, "zookeeper"), "forceSync=yes"); force != fsync {
				t.Errorf("ZooKeeper: forceSync=yes: %t", force)
			}
			if unsafe := strings.Contains(commandLine(t, r, "etcd"), "--unsafe-no-fsync"); unsafe == fsync {
				t.Errorf("etcd: --unsafe-no-fsync: %t", unsafe)
			}
		})
	}
}

// commandLine is for settings that a server does not report to its clients.
func commandLine(t *testing.T, r *rig.Rig, server string) string {
	t.Helper()
	text, err := exec.CommandContext(t.Context(), "ps", "-ww", "-o", "args=", "-p", strconv.Itoa(named(t, r, server).PID())).Output()
	must(t, err)
	return string(text)
}
