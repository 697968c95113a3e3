package zklock

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"oversell/locks"
)

// TestWatches checks that each waiter has one watch, which ends with that waiter. The last waiter
// gets the lock when all waiters before it have given up.
func TestWatches(t *testing.T) {
	here, other, key := session(t, server(), 60*time.Second), session(t, server(), 60*time.Second), newKey()
	l := ZK(here)
	h := acquire(t, ZK(other), request(key, "elsewhere", 0))
	giveUp, cancel := context.WithCancel(t.Context())
	defer cancel()
	got := make(chan error, 5)
	for i := range cap(got) {
		ctx := giveUp
		if i == cap(got)-1 {
			ctx = t.Context()
		}
		go func() {
			h, err := l.Acquire(ctx, request(key, strconv.Itoa(i), time.Minute))
			if err == nil {
				err = h.Release(ctx)
			}
			got <- err
		}()
		soon(t, "its node", func() bool {
			names, _ := nodes(t, other, key)
			return len(names) == i+2
		})
	}
	soon(t, "one watch for each waiter", func() bool { return watchesOf(t, root+key) == cap(got) })
	cancel()
	for range cap(got) - 1 {
		if err := <-got; !errors.Is(err, locks.ErrNotAcquired) {
			t.Errorf("a waiter that gave up: %v", err)
		}
	}
	soon(t, "one watch for the last waiter", func() bool { return watchesOf(t, root+key) == 1 })
	if err := h.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-got; err != nil {
		t.Errorf("the last one: %v", err)
	}
}

// TestSweptAway deletes all nodes of a key, like a reset. A deletion wakes a waiter, which must not
// treat it as a release, because the waiter's own node is deleted as well.
func TestSweptAway(t *testing.T) {
	for name, test := range map[string]struct {
		session time.Duration
		old     time.Duration // time since the last answer of the server
	}{
		"just queued": {60 * time.Second, 0},
		"waits long":  {6 * time.Second, 2100 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) { sweptAway(t, test.session, test.old) })
	}
}

func sweptAway(t *testing.T, timeout, old time.Duration) {
	here, other, key := session(t, server(), timeout), session(t, server(), 60*time.Second), newKey()
	l := ZK(here)
	acquire(t, ZK(other), request(key, "elsewhere", 0))
	holds := make(chan *locks.Lock, 3)
	for i := range cap(holds) {
		go func() {
			h, err := l.Acquire(t.Context(), request(key, strconv.Itoa(i), time.Minute))
			if err != nil {
				t.Error(err)
			}
			holds <- h
		}()
	}
	soon(t, "all of them wait", func() bool {
		names, _ := nodes(t, other, key)
		return len(names) == 1+cap(holds)
	})
	waiting := time.Now()
	soon(t, "the last answer is old", func() bool { return time.Since(waiting) >= old })
	// Delete all nodes in one transaction. Otherwise the first waiter may be granted the lock before
	// its own node is deleted.
	names, _ := nodes(t, other, key)
	var sweep []any
	for _, name := range names {
		sweep = append(sweep, &zk.DeleteRequest{Path: root + key + "/" + name, Version: -1})
	}
	if _, err := other.Multi(sweep...); err != nil {
		t.Fatal(err)
	}
	for range cap(holds) {
		h := <-holds
		if h == nil {
			t.FailNow()
		}
		sound, released := h.Verify(), h.Release(t.Context())
		switch {
		case sound == nil && released == nil:
		case errors.Is(sound, locks.ErrLost) && errors.Is(released, locks.ErrNotHeld):
		default:
			t.Errorf("looked at: %v; released: %v", sound, released)
		}
	}
}

// TestForeignChange changes the data of the holder's node, like Curator's Revoker. The waiter must
// not treat this change as a release.
func TestForeignChange(t *testing.T) {
	s, key := session(t, server(), 60*time.Second), newKey()
	if err := s.mkdir(t.Context(), root+key); err != nil {
		t.Fatal(err)
	}
	theirs, err := s.conn.CreateProtectedEphemeralSequential(root+key+"/lock-", []byte("127.0.0.1"), zk.WorldACL(zk.PermAll))
	if err != nil {
		t.Fatal(err)
	}
	got := make(chan error, 1)
	go func() {
		h, err := ZK(s).Acquire(t.Context(), request(key, "waiter", time.Minute))
		if err == nil {
			err = h.Release(t.Context())
		}
		got <- err
	}()
	watched := func() bool { return watchesOf(t, root+key) == 1 }
	soon(t, "it watches", watched)
	if _, err := s.Set(theirs, []byte("__REVOKE__"), -1); err != nil {
		t.Fatal(err)
	}
	settle(t, s)
	soon(t, "it watches again", watched)
	select {
	case err := <-got:
		t.Fatalf("granted beside the holder: %v", err)
	default:
	}
	if err := s.Delete(theirs, -1); err != nil {
		t.Fatal(err)
	}
	if err := <-got; err != nil {
		t.Error(err)
	}
}

// TestOneListPerGrant checks that a waiter that is woken by a release sends no further request. It
// must list the queue again only if the waiter before it gave up.
func TestOneListPerGrant(t *testing.T) {
	here, other, key := session(t, server(), 60*time.Second), session(t, server(), 60*time.Second), newKey()
	first := acquire(t, ZK(other), request(key, "first", 0))
	acquired := make(chan *locks.Lock, 1)
	go func() {
		h, err := ZK(here).Acquire(t.Context(), request(key, "second", time.Minute))
		if err != nil {
			t.Error(err)
		}
		acquired <- h
	}()
	soon(t, "it watches", func() bool { return watchesOf(t, root+key) == 1 })
	before := packetsOf(t, here)
	if err := first.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	h := <-acquired
	if n := packetsOf(t, here) - before; n > 0 {
		t.Errorf("%d requests after the release, want none", n)
	}
	if err := h.Release(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestSharedLists lets many waiters arrive together. Each of them creates a node and watches one, but they must
// share the lists of the queue.
func TestSharedLists(t *testing.T) {
	here, other, key := session(t, server(), 60*time.Second), session(t, server(), 60*time.Second), newKey()
	l := ZK(here)
	first := acquire(t, ZK(other), request(key, "first", 0))
	before := packetsOf(t, here)
	const waiters = 200
	released := make(chan error, waiters)
	for i := range waiters {
		go func() {
			h, err := l.Acquire(t.Context(), request(key, strconv.Itoa(i), 5*time.Minute))
			if err == nil {
				err = h.Release(t.Context())
			}
			released <- err
		}()
	}
	soon(t, "all watch", func() bool { return watchesOf(t, root+key) == waiters })
	if lists := packetsOf(t, here) - before - 2*waiters; lists > waiters/2 {
		t.Errorf("%d waiters sent %d requests beside creations and watches, want at most half as many", waiters, lists)
	}
	if err := first.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range waiters {
		if err := <-released; err != nil {
			t.Error(err)
		}
	}
}

func packetsOf(t *testing.T, s *Session) int64 {
	t.Helper()
	return ask(t, "cons", fmt.Sprintf(`queued=\d+,recved=(\d+),[^)]*sid=0x%x`, s.SessionID()))
}
