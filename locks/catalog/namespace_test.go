package catalog_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"oversell/api"
	"oversell/locks"
	"oversell/locks/catalog"
)

// TestNamespace holds each lock in one namespace. Another namespace can lock the same key, and reset it, without an
// effect on this one. A replica of the same namespace cannot.
func TestNamespace(t *testing.T) {
	t.Parallel()
	newTestbed(t, servers)
	var replicas []catalog.Backends // two of namespace b, and one without a namespace
	for _, namespace := range []string{"b", "b", ""} {
		b, err := open(settings{servers.Addresses(), longLease, nil})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(b.Close)
		b.Namespace = namespace
		replicas = append(replicas, b)
	}
	for id, holder := range catalog.ByHand(replicas[0]) {
		if holder.Card().Scope != api.ScopeShared {
			continue
		}
		t.Run(id, func(t *testing.T) {
			t.Parallel()
			key := "namespace:" + uuid.NewString()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			ctx = locks.WithTracer(ctx, func(_ context.Context, e api.Event) {
				if strings.HasPrefix(e.Key, "b:") {
					t.Errorf("the step %s has the key %s", e.Step, e.Key)
				}
			})
			exclusive(t, id, func(of int) (*locks.Lock, error) {
				return catalog.ByHand(replicas[of])[id].Acquire(ctx, locks.Request{Key: key, Owner: strconv.Itoa(of)})
			},
				func() error { return catalog.ByHand(replicas[2])[id].(locks.Cleaner).Clear(ctx, key) }) //nolint:forcetypeassert // decorated
		})
	}
	for i, of := range catalog.Primitives(replicas[0]) {
		exclusive(t, of.Backend+" semaphore", func(of int) (*locks.Lock, error) {
			return catalog.Primitives(replicas[of])[i].Semaphore.Acquire(t.Context(), locks.Request{Key: "namespace", Owner: strconv.Itoa(of)}, 1, 1)
		}, func() error { return catalog.Primitives(replicas[2])[i].Clear(t.Context()) })
	}
}

// exclusive holds a lock in the first replica. reset resets the lock of the last one.
func exclusive(t *testing.T, name string, acquire func(replica int) (*locks.Lock, error), reset func() error) {
	t.Helper()
	held, err := acquire(0)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	defer func() { _ = held.Release(context.Background()) }()
	for range 2 {
		other, err := acquire(2)
		if err != nil {
			t.Fatalf("%s: another namespace holds its lock: %v", name, err)
		}
		if second, err := acquire(1); !errors.Is(err, locks.ErrNotAcquired) {
			t.Errorf("%s: two replicas of a namespace hold its lock: %v, %v", name, second, err)
		}
		if err := errors.Join(other.Release(t.Context()), reset()); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
}
