package zklock

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"oversell/lab/rig"
	"oversell/lab/rig/rigtest"
	"oversell/locks"
	"oversell/trial/lockstest"
)

var servers *rig.Rig

func TestMain(m *testing.M) {
	rigtest.MainWith(m, rigtest.Guest(rig.Config{Zookeeper: 1}), func(r *rig.Rig) { servers = r })
}

// server returns the address of the rig's ZooKeeper.
func server() string {
	addr, _, _ := strings.Cut(servers.Addresses().Zookeeper[0], "/") // without the folder of a guest
	return addr
}

// session opens a ZooKeeper session, and closes it at the end of the test.
func session(t *testing.T, addr string, timeout time.Duration) *Session {
	t.Helper()
	s, err := Open([]string{addr}, timeout, Access{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// linkTo returns a network link to the server. A test can cut this link.
func linkTo(t *testing.T) *lockstest.Link {
	t.Helper()
	link, err := lockstest.NewLink(t.Context(), server())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = link.Close() })
	return link
}

// newKey returns a key that no other test uses.
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

// nodes returns the names of a key's nodes. changes counts every creation and deletion of a node of
// this key.
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

// soon returns when is() is true. If that takes more than 30 s, soon fails the test.
func soon(t *testing.T, what string, is func() bool) {
	t.Helper()
	for began := time.Now(); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Since(began) > 30*time.Second {
			t.Fatalf("never: %s", what)
		}
	}
}
