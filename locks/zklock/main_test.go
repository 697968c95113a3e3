package zklock

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"

	"oversell/lab/rig"
	"oversell/lab/rig/rigtest"
	"oversell/locks"
	"oversell/locks/lockstest"
)

var servers *rig.Rig

func TestMain(m *testing.M) {
	rigtest.MainWith(m, rig.Config{Zookeeper: true}, func(r *rig.Rig) { servers = r })
}

// server is where the rig's ZooKeeper listens.
func server() string { return servers.Addresses().Zookeeper[0] }

// session opens one that ends with the test.
func session(t *testing.T, addr string, timeout time.Duration) *Session {
	t.Helper()
	s, err := Open([]string{addr}, timeout)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// wire is a line to the server that can be cut.
func wire(t *testing.T) *lockstest.Link {
	t.Helper()
	line, err := lockstest.NewLink(t.Context(), server())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = line.Close() })
	return line
}

// newKey is a key that no other test uses.
func newKey() string { return "stock:" + uuid.NewString() }

func request(key, owner string, wait time.Duration) locks.Request {
	return locks.Request{Key: key, Owner: owner, Wait: wait}
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

// nodes are the children of a key, and how often they have changed.
func nodes(t *testing.T, s *Session, key string) (names []string, changes int32) {
	t.Helper()
	names, stat, err := s.Children(root + key)
	if isNoNode(err) {
		return nil, 0
	}
	if err != nil {
		t.Fatal(err)
	}
	return names, stat.Cversion
}

// soon returns when what is true, and fails when it never is.
func soon(t *testing.T, what string, is func() bool) {
	t.Helper()
	for began := time.Now(); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Since(began) > 30*time.Second {
			t.Fatalf("never: %s", what)
		}
	}
}
