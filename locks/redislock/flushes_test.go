package redislock

import "testing"

// TestFlushes checks that only FLUSHALL and FLUSHDB are counted, on all servers.
func TestFlushes(t *testing.T) {
	all := masters(t, servers)
	before, err := Flushes(t.Context(), all...)
	if err != nil {
		t.Fatal(err)
	}
	all[0].Del(t.Context(), newKey())
	all[0].ScriptFlush(t.Context())
	all[1].FlushDB(t.Context())
	all[1].FlushAll(t.Context())
	all[2].FlushAll(t.Context())
	if n, err := Flushes(t.Context(), all...); err != nil || n-before != 3 {
		t.Errorf("%d flushes, %v; want 3", n-before, err)
	}
	if _, err := Flushes(t.Context(), client(t, "redis://127.0.0.1:1/0")); err == nil {
		t.Error("counted without a server")
	}
}
