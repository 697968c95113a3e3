package fault_test

import (
	"testing"

	"oversell/lab/fault"
)

func TestFailover(t *testing.T) {
	ctx := t.Context()
	over := link(t, "replica-1", "redis-1")
	value := func(addr, key string) string { return client(t, addr).Get(ctx, key).Val() }
	follower := server(t, "redis-1-replica").Addr()
	must(t, client(t, over.Addr()).Set(ctx, "kept", "yes", 0).Err())
	eventually(t, "nothing is replicated", func() bool { return value(follower, "kept") == "yes" })

	for range 2 { // after its heal, the failover can be repeated
		uncut := inject(t, fault.Cut(link(t, "redis-1-replica", "redis-1")))
		must(t, client(t, over.Addr()).Set(ctx, "lock", "holder", 0).Err())
		heal := inject(t, fault.Failover(lab))
		c := client(t, over.Addr())
		if got := c.Get(ctx, "kept").Val(); got != "yes" {
			t.Errorf("kept is %q: the clients were not moved to the replica", got)
		}
		if n := c.Exists(ctx, "lock").Val(); n != 0 {
			t.Error("the lock has reached the replica")
		}
		if server(t, "redis-1").PID() != 0 {
			t.Error("the master is alive")
		}
		must(t, c.Set(ctx, "since", "yes", 0).Err())
		heal()
		heal()
		uncut()
		for _, addr := range []string{over.Addr(), server(t, "redis-1").Addr(), follower} {
			if value(addr, "since") != "yes" || value(addr, "kept") != "yes" {
				t.Errorf("%s has lost data by the heal", addr)
			}
		}
		must(t, client(t, over.Addr()).Del(ctx, "since").Err())
		eventually(t, "nothing is replicated after the heal", func() bool { return value(follower, "since") == "" })
	}
	if status(t, "replica-1", "/readyz") != 200 {
		t.Error("the replica is not ready")
	}
}
