package cli

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"oversell/lab/rig"
	"oversell/lab/rig/rigtest"
	"oversell/locks/redislock"
)

// TestRedisCauses checks what /readyz and the log say about a Redis, a Sentinel or a cluster that cannot be
// used, and that they do not show the password.
func TestRedisCauses(t *testing.T) {
	t.Parallel()
	const secret = "wr0ng-pa55-w0rd"
	sentinel := rigtest.Start(t, rig.Config{Redis: 1, RedisTopology: rig.RedisSentinel})
	cluster := rigtest.Start(t, rig.Config{Redis: 1, RedisTopology: rig.RedisCluster})
	_, server, _ := strings.Cut(sentinel.Addresses().Redis[0], "@")
	says := func(url, want string) {
		t.Helper()
		c, err := redislock.Open(url, 2)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = c.Close() }()
		if want == "" {
			if err := redislock.Ping(t.Context(), c); err != nil {
				t.Error(err)
			}
			return
		}
		why := ""
		for began := time.Now(); !strings.HasPrefix(why, want) && time.Since(began) < 30*time.Second; time.Sleep(20 * time.Millisecond) {
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			if err := explain("redis", redislock.Ping(ctx, c)); err != nil {
				why = err.Error()
			}
			cancel()
		}
		if !strings.HasPrefix(why, want) || strings.Contains(why, secret) {
			t.Errorf("it says %q, want %q", why, want)
		}
	}
	says("redis://:"+secret+"@"+server, "the server refused the user: correct the user or the password in REDIS_URL (")
	says("redis://"+strings.TrimSuffix(server, "/0"), "the server requires a password: add it to REDIS_URL (")
	says("redis://:"+secret+"@127.0.0.1:1", "nothing listens at the address: start the server, or correct REDIS_URL (")
	says("redis-sentinel://:"+secret+"@127.0.0.1:1,127.0.0.1:2/oversell", "no Sentinel answers: check that they run, the addresses in REDIS_URL, and the user in its parameter sentinel (")
	says(strings.Replace(sentinel.Addresses().SingleRedis, "/oversell?", "/another?", 1), "the Sentinels know no master of this name: correct the name at the end of REDIS_URL (")
	says(sentinel.Addresses().SingleRedis, "")
	says(cluster.Addresses().SingleRedis, "")

	var err error
	for _, name := range []string{"redis-node-1", "redis-node-2"} { // a majority of the masters, so no replica takes over
		s, missing := cluster.Server(name)
		s.Kill()
		err = errors.Join(err, missing)
	}
	if err != nil {
		t.Fatal(err)
	}
	says(cluster.Addresses().SingleRedis, "some masters of the cluster are missing: start them, or let their replicas take over (")
}
