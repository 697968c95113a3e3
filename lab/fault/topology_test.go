package fault_test

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"oversell/lab/fault"
	"oversell/lab/rig"
	"oversell/lab/rig/rigtest"
)

// TestSentinelFaults splits a lab, heals it, and then takes the majority of its Sentinels away. It needs
// OVERSELL_TOPOLOGIES: on a busy machine, Sentinels take more than a minute to agree.
func TestSentinelFaults(t *testing.T) {
	if os.Getenv("OVERSELL_TOPOLOGIES") == "" {
		t.Skip("make topologies runs it")
	}
	t.Parallel() // it mostly waits for the Sentinels
	ctx := t.Context()
	r := rigtest.Start(t, rig.Config{RedisTopology: rig.RedisSentinel, RedisMinReplicas: 1})
	old := clientOf(t, r, "redis-master")
	must(t, old.Set(ctx, "before", "yes", 0).Err())

	heal, err := fault.MastersOf(r).Split().Inject(ctx)
	must(t, err)
	if got, err := old.Get(ctx, "before").Result(); got != "yes" {
		t.Errorf("the old master does not serve its clients: %v", err)
	}
	if err := old.Set(ctx, "late", "yes", 0).Err(); err == nil || !strings.HasPrefix(err.Error(), "NOREPLICAS") {
		t.Errorf("the old master without replicas accepts a write: %v", err)
	}
	promoted := master(t, r, "redis-replica-1", "redis-replica-2")
	must(t, promoted.Set(ctx, "since", "yes", 0).Err())
	if n := old.Exists(ctx, "since").Val(); n != 0 {
		t.Error("the old master has a write of the other side")
	}
	must(t, heal(context.WithoutCancel(ctx)))
	eventually(t, "the old master has no write of the new one", func() bool { return old.Get(ctx, "since").Val() == "yes" })

	writes := func(key, value string) { // on a busy machine, the Sentinels may replace a master that answers late
		t.Helper()
		eventually(t, "the master accepts a write", func() bool {
			promoted = master(t, r, "redis-master", "redis-replica-1", "redis-replica-2")
			return promoted != nil && promoted.Set(ctx, key, value, 0).Err() == nil
		})
	}
	writes("lock", "holder")
	heal, err = fault.MastersOf(r).LoseQuorum("sentinel-2").Inject(ctx)
	must(t, err)
	if master(t, r, "redis-master", "redis-replica-1", "redis-replica-2") != nil {
		t.Error("one Sentinel of three has made a master")
	}
	must(t, heal(context.WithoutCancel(ctx)))
	writes("after", "yes")
	if got := promoted.Get(ctx, "lock").Val(); got != "holder" {
		t.Error("the new master has lost the lock, which was replicated")
	}
}

// TestReshard checks what the old master answers at each stage.
func TestReshard(t *testing.T) {
	t.Parallel() // it mostly waits for the nodes
	ctx := t.Context()
	r := rigtest.Start(t, rig.Config{RedisTopology: rig.RedisCluster})
	node1 := clientOf(t, r, "redis-node-1").Options()
	c := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{node1.Addr}, Password: node1.Password})
	t.Cleanup(func() { _ = c.Close() })
	must(t, c.Set(ctx, "{f1cd}:fence", "1", 0).Err())
	must(t, c.Set(ctx, "another lock of stock:7", "holder", 0).Err())
	masters := fault.MastersOf(r)
	must(t, masters.Observe(ctx))
	must(t, c.Set(ctx, "{f1cd}:lock", "holder", 0).Err())
	node, err := c.MasterForKey(ctx, "{f1cd}:lock")
	must(t, err)
	from := redis.NewClient(&redis.Options{Addr: node.Options().Addr, Password: node.Options().Password, MaxRetries: -1})
	t.Cleanup(func() { _ = from.Close() })

	move, err := masters.Reshard(ctx)
	must(t, err)
	for _, test := range []struct {
		stage int
		want  string // what the answer to a command with both keys begins with
	}{
		{fault.Announced, "holder 1"}, {fault.PartlyMoved, "TRYAGAIN"}, {fault.Moved, "ASK"}, {fault.Reassigned, "MOVED"},
	} {
		must(t, move.Advance(ctx, test.stage))
		var got string
		if values, err := from.MGet(ctx, "{f1cd}:lock", "{f1cd}:fence").Result(); err != nil {
			got = err.Error()
		} else {
			got = values[0].(string) + " " + values[1].(string) //nolint:forcetypeassert // two strings
		}
		if !strings.HasPrefix(got, test.want) {
			t.Errorf("stage %d: the old master answers %q, want %s", test.stage, got, test.want)
		}
		if got := c.Get(ctx, "{f1cd}:lock").Val(); got != "holder" {
			t.Errorf("stage %d: a client that follows redirections reads %q", test.stage, got)
		}
	}
	must(t, move.Finish(ctx))
}

func clientOf(t *testing.T, r *rig.Rig, name string) *redis.Client {
	t.Helper()
	s, err := r.Server(name)
	must(t, err)
	options, err := redis.ParseURL(s.RedisURL())
	must(t, err)
	c := redis.NewClient(options)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// master returns a client of the one server of these that runs as a master, or nil.
func master(t *testing.T, r *rig.Rig, names ...string) *redis.Client {
	t.Helper()
	for _, name := range names {
		s, err := r.Server(name)
		must(t, err)
		if s.PID() == 0 {
			continue
		}
		c := clientOf(t, r, name)
		info, err := c.Info(t.Context(), "replication").Result()
		must(t, err)
		if strings.Contains(info, "role:master") {
			return c
		}
	}
	return nil
}
