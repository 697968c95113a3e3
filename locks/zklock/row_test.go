package zklock

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"oversell/locks"
)

func lockNode(seq int) string { return fmt.Sprintf("_c_guid-lock-%010d", seq) }

func lockNodes(seqs ...int) (names []string) {
	for _, seq := range seqs {
		names = append(names, lockNode(seq))
	}
	return names
}

// TestRows: what one replica knows of a row, while its own and others' nodes come and go.
func TestRows(t *testing.T) {
	const dir = "/row"
	var r rows
	ahead := func(s *own, known bool, seqs ...int) {
		t.Helper()
		if names, ok := r.ahead(s); ok != known || !slices.Equal(names, lockNodes(seqs...)) {
			t.Errorf("ahead of %s: %v, known: %v; want %v, %v", s.node, names, ok, lockNodes(seqs...), known)
		}
	}
	before := func(s, want *own) {
		t.Helper()
		if got := r.before(s); got != want {
			t.Errorf("of this replica before %s: %v, want %v", s.node, got, want)
		}
	}
	third, first := r.enter(dir, lockNode(7)), r.enter(dir, lockNode(3))
	second := r.enter(dir, lockNode(5)) // not in the order in which they were made
	other := r.enter("/another", lockNode(1))
	before(first, nil)
	before(second, first)
	before(third, second)
	before(other, nil)

	ahead(first, false)
	r.learn(first, lockNodes(2, 3, 4, 5, 6))
	ahead(first, true, 2)
	ahead(second, true, 2, 3, 4)
	ahead(third, false) // came after the list
	r.gone(first, lockNode(2))
	ahead(first, true)
	ahead(second, true, 3, 4)
	r.gone(first, lockNode(99)) // was never there

	r.leave(first)
	before(second, nil)
	ahead(second, true, 4)
	select {
	case <-first.left:
	default:
		t.Error("who waits for the first was not told")
	}
	r.learn(second, lockNodes(3, 4, 5, 6, 7)) // the first node is not gone yet
	ahead(second, true, 4)
	ahead(third, true, 4, 5, 6)
	r.deleted(first, true)
	r.leave(second)
	before(third, nil)
	ahead(third, true, 4, 6)
	r.deleted(second, false) // it may still be there
	ahead(third, false)
	r.learn(third, lockNodes(4, 5, 7))
	ahead(third, true, 4, 5)
	r.leave(third)
	r.leave(other)
	r.deleted(other, true)
	r.deleted(third, false)
	if len(r.byDir) != 0 {
		t.Errorf("nobody stands anywhere, and %v are kept", r.byDir)
	}
}

// TestOneLooksForAll: of all the waiters of a replica only the first one watches,
// and whoever is behind it gets its turn when those before it have given up.
func TestOneLooksForAll(t *testing.T) {
	here, other, key := session(t, server(), 60*time.Second), session(t, server(), 60*time.Second), newKey()
	l := ZK(here)
	h := acquire(t, ZK(other), request(key, "elsewhere", 0))
	got := make(chan error, 5)
	for i := range cap(got) {
		wait := time.Minute
		if i < cap(got)-1 {
			wait = 500 * time.Millisecond
		}
		go func() {
			h, err := l.Acquire(t.Context(), request(key, strconv.Itoa(i), wait))
			if err == nil {
				err = h.Release(t.Context())
			}
			got <- err
		}()
		soon(t, "its node", func() bool {
			names, _ := nodes(t, other, key)
			return len(names) == i+2
		})
	}
	if n := watchesOf(t, root+key); n != 1 {
		t.Errorf("%d watches for one replica's waiters, want 1", n)
	}
	for range cap(got) - 1 {
		if err := <-got; err == nil {
			t.Error("granted beside the holder")
		}
	}
	soon(t, "the last one watches", func() bool { return watchesOf(t, root+key) == 1 })
	if err := h.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-got; err != nil {
		t.Errorf("the last one: %v", err)
	}
}

// TestSweptAway: somebody deletes all nodes, as a reset does. Nobody takes that for a
// release: whoever seems to be the first now finds that its own node is gone, before the
// grant, or at the first look at the hold, before it could write.
func TestSweptAway(t *testing.T) {
	for name, test := range map[string]struct {
		session time.Duration
		old     time.Duration // how long ago the server has answered
	}{
		"just queued": {60 * time.Second, 0},
		"waits long":  {6 * time.Second, 1100 * time.Millisecond},
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
	// In one transaction: else the first may be granted, truly, before its own node goes.
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
