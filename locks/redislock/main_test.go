package redislock

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"

	"oversell/lab/rig"
	"oversell/lab/rig/rigtest"
	"oversell/locks"
)

var servers *rig.Rig

func TestMain(m *testing.M) {
	logging.Disable() // the client also returns the errors
	rigtest.MainWith(m, rig.Config{Redis: 5}, func(r *rig.Rig) { servers = r })
}

// masters returns a client for each of the rig's servers.
func masters(t *testing.T, r *rig.Rig) []redis.UniversalClient {
	t.Helper()
	var all []redis.UniversalClient
	for _, url := range r.Addresses().Redis {
		all = append(all, client(t, url))
	}
	return all
}

func client(t *testing.T, url string) redis.UniversalClient {
	t.Helper()
	c, err := Open(url, 16)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// one returns a client for the first server.
func one(t *testing.T) redis.UniversalClient {
	t.Helper()
	return client(t, servers.Addresses().Redis[0])
}

// newKey returns a key that no other test uses.
func newKey() string { return "stock:" + uuid.NewString() }

func request(key, owner string, wait, lease time.Duration) locks.Request {
	return locks.Request{Key: key, Owner: owner, Wait: wait, Lease: lease}
}

func acquire(t *testing.T, l locks.Locker, r locks.Request) *locks.Lock {
	t.Helper()
	h, err := l.Acquire(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Release(context.Background()) })
	return h
}

// soon returns when is() is true. It fails the test after 20 s.
func soon(t *testing.T, what string, is func() bool) {
	t.Helper()
	for began := time.Now(); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Since(began) > 20*time.Second {
			t.Fatalf("never: %s", what)
		}
	}
}
