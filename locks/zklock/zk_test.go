package zklock

import (
	"context"
	"errors"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"oversell/locks"
)

// TestNode checks that a lock's node is ephemeral and named like Curator's. The fence must be the
// id of the transaction that created the node.
func TestNode(t *testing.T) {
	s, key := session(t, server(), 10*time.Second), newKey()
	r := request(key, "owner", 0) // without a wait, although the session does not exist yet
	r.Fenced = true
	h := acquire(t, ZK(s), r)
	names, _ := nodes(t, s, key)
	if len(names) != 1 || !regexp.MustCompile(`^_c_[0-9a-f-]{36}-lock-\d{10}$`).MatchString(names[0]) {
		t.Fatalf("the key's nodes: %v", names)
	}
	_, stat, err := s.Exists(root + key + "/" + names[0])
	if err != nil || stat.EphemeralOwner != s.SessionID() || stat.Czxid != h.Fence() || h.Fence() == 0 {
		t.Errorf("owner %d (we are %d), fence %d, transaction %d: %v", stat.EphemeralOwner, s.SessionID(), h.Fence(), stat.Czxid, err)
	}
	if err := h.Release(t.Context()); err != nil {
		t.Error(err)
	}
	if names, _ := nodes(t, s, key); len(names) != 0 {
		t.Errorf("after the release: %v", names)
	}
}

// TestForeignNames checks that nodes with other names in the folder of a key do not block the lock.
func TestForeignNames(t *testing.T) {
	s, key := session(t, server(), 10*time.Second), newKey()
	if err := s.mkdir(t.Context(), root+key); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"config", "_c_x-READ-0000000000", "x-lock-abc", "x-lock-0000000000", "_c_x-lock-0"} {
		if _, err := s.Create(root+key+"/"+name, nil, 0, zk.WorldACL(zk.PermAll)); err != nil {
			t.Fatal(err)
		}
	}
	acquire(t, ZK(s), request(key, "owner", 0))
}

// TestForeignNode creates a node that belongs to no session but is named like a lock's node. The
// strategy zk ignores the node. The errors of zk-watch-naive and zk-sequential contain the node's
// name. A reset deletes the node and its children.
func TestForeignNode(t *testing.T) {
	s := session(t, server(), 10*time.Second)
	const name = "_c_8f7d3c5a-lock-0000000000"
	foreign := func(t *testing.T, dir string) {
		t.Helper()
		if err := s.mkdir(t.Context(), dir+"/"+name+"/child"); err != nil {
			t.Fatal(err)
		}
	}
	t.Run("zk", func(t *testing.T) {
		l, key := ZK(s), newKey()
		foreign(t, root+key)
		for range 3 {
			h := acquire(t, l, request(key, "first", 0))
			second := make(chan error, 1)
			go func() {
				h, err := ZK(s).Acquire(t.Context(), request(key, "second", time.Minute))
				if err == nil {
					err = h.Release(t.Context())
				}
				second <- err
			}()
			soon(t, "the second one waits", func() bool {
				names, _ := nodes(t, s, key)
				return len(names) == 3
			})
			if err := h.Release(t.Context()); err != nil {
				t.Error(err)
			}
			if err := <-second; err != nil {
				t.Error(err)
			}
		}
		removed(t, s, l, root+key, key)
	})
	for _, test := range []struct {
		l    locks.Locker
		root string
	}{{WatchNaive(s), watchNaiveRoot}, {Sequential(s), sequentialRoot}} {
		t.Run(test.l.Card().ID, func(t *testing.T) {
			key := newKey()
			foreign(t, test.root+key)
			_, err := test.l.Acquire(t.Context(), request(key, "owner", 200*time.Millisecond))
			if !errors.Is(err, errForeign) || !strings.Contains(err.Error(), name) {
				t.Errorf("it is not named: %v", err)
			}
			removed(t, s, test.l, test.root+key, key)
		})
	}
}

// removed resets a key, and checks that no node is left and the lock is free.
func removed(t *testing.T, s *Session, l locks.Locker, dir, key string) {
	t.Helper()
	if err := l.(locks.Cleaner).Clear(t.Context(), key); err != nil {
		t.Error(err)
	}
	if names, err := s.list(t.Context(), dir); err != nil || len(names) > 0 {
		t.Errorf("after a reset: %v, %v", names, err)
	}
	acquire(t, l, request(key, "after the reset", 0))
}

// TestLateNode cancels a request while its node is being created. The node must be found by its
// GUID and deleted.
func TestLateNode(t *testing.T) {
	link := linkTo(t)
	s, other, key := session(t, link.Addr(), 20*time.Second), session(t, server(), 20*time.Second), newKey()
	l := ZK(s)
	if err := acquire(t, l, request(key, "first", 0)).Release(t.Context()); err != nil { // creates the folder
		t.Fatal(err)
	}
	_, before := nodes(t, other, key)
	held, free := link.HoldNext("-lock-")
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := l.Acquire(ctx, request(key, "late", time.Minute))
		done <- err
	}()
	<-held
	cancel()
	if err := <-done; !errors.Is(err, locks.ErrNotAcquired) || !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want %v", err, locks.ErrNotAcquired)
	}
	free()
	soon(t, "the late node has come and gone", func() bool {
		names, changes := nodes(t, other, key)
		return changes == before+2 && len(names) == 0
	})
	acquire(t, ZK(other), request(key, "next", 0))
}

// TestShortCut cuts the connection for less than the session time-out. From the cut on, the lock is
// not trusted, even when the client has connected again. But its release deletes the node.
func TestShortCut(t *testing.T) {
	link := linkTo(t)
	s, other, key := session(t, link.Addr(), 30*time.Second), session(t, server(), 20*time.Second), newKey()
	h := acquire(t, ZK(s), request(key, "owner", 0))
	link.Cut(true)
	<-h.Context().Done()
	if err := h.Verify(); !errors.Is(err, locks.ErrLost) {
		t.Errorf("cut off: %v, want %v", err, locks.ErrLost)
	}
	if names, _ := nodes(t, other, key); len(names) != 1 {
		t.Errorf("the node must outlive the connection: %v", names)
	}
	link.Cut(false)
	soon(t, "a connection again", func() bool { return s.Alive().Err() == nil })
	if err := h.Verify(); !errors.Is(err, locks.ErrLost) {
		t.Errorf("after the cut: %v, want %v", err, locks.ErrLost)
	}
	if err := h.Release(t.Context()); err != nil {
		t.Errorf("released in the same session: %v", err)
	}
	acquire(t, ZK(other), request(key, "next", 0))
}

// TestRaise checks that AdvanceFence raises the holder's fence and does not wake the next waiter.
// If the holder's node was deleted, AdvanceFence must fail.
func TestRaise(t *testing.T) {
	s, key := session(t, server(), 10*time.Second), newKey()
	r := request(key, "owner", 0)
	r.Fenced = true
	h := acquire(t, ZK(s), r)
	names, _ := nodes(t, s, key)
	if len(names) != 1 {
		t.Fatalf("the key's nodes: %v", names)
	}
	_, _, watch, err := s.GetW(root + key + "/" + names[0])
	if err != nil {
		t.Fatal(err)
	}
	before := h.Fence()
	if err := h.AdvanceFence(t.Context(), before); err != nil || h.Fence() <= before {
		t.Errorf("raised from %d to %d: %v", before, h.Fence(), err)
	}
	raised := h.Fence()
	if err := s.Delete(root+key+"/"+names[0], -1); err != nil {
		t.Fatal(err)
	}
	if e := <-watch; e.Type != zk.EventNodeDeleted {
		t.Errorf("the waiter behind would be woken by %v", e.Type)
	}
	if err := h.AdvanceFence(t.Context(), raised); err == nil || h.Fence() != raised {
		t.Errorf("without a node raised to %d: %v", h.Fence(), err)
	}
	_ = h.Release(t.Context())
	next := acquire(t, ZK(s), r)
	if next.Fence() <= raised {
		t.Errorf("the next holder has fence %d, want one above %d", next.Fence(), raised)
	}
}
