package zklock

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"oversell/locks"
)

// fill creates n nodes in a folder.
func fill(t *testing.T, s *Session, dir string, n int, name func(int) string) {
	t.Helper()
	if err := s.mkdir(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for part := range 10 {
		all.Go(func() {
			for i := part; i < n; i += 10 {
				if _, err := s.Create(dir+"/"+name(i), nil, 0, zk.WorldACL(zk.PermAll)); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
}

// TestFullPrimitives fills each kind of primitive with locks.MaxNames names, the largest allowed
// number. The names in use stay usable, and a new name is rejected. After a reset, new names are
// accepted again.
func TestFullPrimitives(t *testing.T) {
	s := session(t, server(), 10*time.Second)
	p := Primitives(s, "")
	t.Cleanup(func() { _ = p.Clear(context.Background()) })
	if _, err := p.Counter.ForceSet(t.Context(), "old", 1); err != nil {
		t.Fatal(err)
	}
	if set, err := p.Barrier.Set(t.Context(), "old"); err != nil || !set {
		t.Fatal(set, err)
	}
	name := func(i int) string { return fmt.Sprintf("name-%d", i) }
	for _, kind := range []string{"counter", "barrier", "read-write", "semaphore", "double-barrier"} {
		fill(t, s, primitives+"/"+kind, locks.MaxNames, name)
	}
	r := request("new", "owner", time.Minute)
	uses := map[string]func(key string) error{
		"counter": func(key string) error { _, err := p.Counter.ForceSet(t.Context(), key, 1); return err },
		"barrier": func(key string) error { _, err := p.Barrier.Set(t.Context(), key); return err },
		"watch": func(key string) error {
			ctx, end := context.WithCancel(t.Context())
			defer end()
			_, err := p.Counter.Watch(ctx, key)
			return err
		},
		"read-write": func(key string) error {
			r.Key = key
			h, err := p.ReadWrite.Write(t.Context(), r)
			if err != nil {
				return err
			}
			return h.Release(t.Context())
		},
		"semaphore": func(key string) error {
			r.Key = key
			h, err := p.Semaphore.Acquire(t.Context(), r, 1, 1)
			if err != nil {
				return err
			}
			return h.Release(t.Context())
		},
		"double-barrier": func(key string) error {
			r.Key = key
			if err := p.DoubleBarrier.Enter(t.Context(), r, 1); err != nil {
				return err
			}
			return p.DoubleBarrier.Leave(t.Context(), r)
		},
	}
	for kind, use := range uses {
		if err := use("new"); !errors.Is(err, locks.ErrFull) {
			t.Errorf("%s, one name more: %v", kind, err)
		}
		old := name(7)
		if kind == "counter" || kind == "barrier" || kind == "watch" { // the nodes of fill hold no data
			old = "old"
		}
		if err := use(old); err != nil {
			t.Errorf("%s, a name that is there: %v", kind, err)
		}
	}
	if set, err := p.Barrier.Set(t.Context(), "old"); err != nil || set {
		t.Errorf("a barrier that is up was set: %v, %v", set, err)
	}
	if err := p.Clear(t.Context()); err != nil {
		t.Fatal(err)
	}
	for kind, use := range uses {
		if err := use("new"); err != nil {
			t.Errorf("%s after the reset: %v", kind, err)
		}
	}
}

// TestFullDoubleBarrier checks that a double barrier with MaxNames members rejects one member more.
func TestFullDoubleBarrier(t *testing.T) {
	s := session(t, server(), 10*time.Second)
	p := Primitives(s, "")
	t.Cleanup(func() { _ = p.Clear(context.Background()) })
	fill(t, s, primitives+"/double-barrier/full", locks.MaxNames, func(i int) string {
		return fmt.Sprintf("_c_%036d-member-m%d=%010d", i, i, i)
	})
	r := request("full", "late", time.Minute)
	if err := p.DoubleBarrier.Enter(t.Context(), r, 1); !errors.Is(err, locks.ErrFull) {
		t.Errorf("one member more: %v", err)
	}
	if names, err := s.list(t.Context(), primitives+"/double-barrier/full"); err != nil || len(names) != locks.MaxNames {
		t.Errorf("%d members, %v: the rejected member left a node", len(names), err)
	}
}
