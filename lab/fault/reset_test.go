package fault_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/lab/fault"
)

// TestReset checks that old and new connections end at once, and that no request arrives.
func TestReset(t *testing.T) {
	l := link(t, "replica-1", "redis-2")
	direct, old := client(t, server(t, "redis-2").Addr()), client(t, l.Addr())
	if !answers(t, old) || !answers(t, direct) {
		t.Fatal("no answer before the fault")
	}
	heal := inject(t, fault.Reset(l))
	must(t, direct.Del(t.Context(), "reset").Err())
	for _, c := range []*redis.Client{old, client(t, l.Addr())} {
		began := time.Now()
		if err := c.Set(t.Context(), "reset", 1, 0).Err(); err == nil || time.Since(began) > 5*time.Second {
			t.Errorf("a write ends with %v after %v", err, time.Since(began))
		}
	}
	if !answers(t, direct) {
		t.Error("others don't reach the backend any more")
	}
	heal()
	eventually(t, "no answer after the heal", func() bool { return answers(t, client(t, l.Addr())) })
	if n := direct.Exists(t.Context(), "reset").Val(); n != 0 {
		t.Error("a request has arrived")
	}
}
