package locks

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
)

// Queue puts one line per key in front of a shared lock: of all the waiters in
// this process only the first one troubles the backend. A hundred waiters on
// three replicas are then three to Redis or ZooKeeper, in order of arrival
// within a replica.
func Queue(l Locker) Locker { return &queue{Locker: l} }

type queue struct {
	Locker
	turns Turns
}

func (q *queue) Acquire(ctx context.Context, r Request) (*Hold, error) {
	began := time.Now()
	leave, err := q.turns.Take(ctx, r.Key, r.Wait)
	if err != nil {
		return nil, err
	}
	r.Wait = max(0, r.Wait-time.Since(began))
	h, err := q.Locker.Acquire(ctx, r)
	if err != nil {
		leave()
		return nil, err
	}
	h.Then(leave)
	return h, nil
}

// Clear passes on: a decorator must not hide what its locker can do.
func (q *queue) Clear(ctx context.Context, key string) error { return clearOf(ctx, q.Locker, key) }

func clearOf(ctx context.Context, l Locker, key string) error {
	if c, ok := l.(Cleaner); ok {
		return c.Clear(ctx, key)
	}
	return nil
}

// Turns lets one task at a time pass for each key, in order of arrival, within
// this process. The zero value is ready.
type Turns struct {
	mu   sync.Mutex
	gate map[string]*gate
}

type gate struct {
	slot *semaphore.Weighted
	uses int // holders and waiters; at 0 the key is forgotten
}

// Take waits for the turn until ctx ends or wait has passed: ErrNotAcquired.
// It looks once even when wait is 0. leave gives the turn to the next.
func (t *Turns) Take(ctx context.Context, key string, wait time.Duration) (leave func(), err error) {
	g := t.enter(key)
	if !g.slot.TryAcquire(1) {
		waiting, cancel := context.WithTimeout(ctx, wait)
		err = g.slot.Acquire(waiting, 1)
		cancel()
		if err != nil {
			t.forget(key, g)
			return nil, NotAcquired(ctx, key, wait)
		}
	}
	var once sync.Once
	return func() {
		once.Do(func() {
			g.slot.Release(1)
			t.forget(key, g)
		})
	}, nil
}

// NotAcquired says which of the two clocks ended a wait for key.
func NotAcquired(ctx context.Context, key string, wait time.Duration) error {
	if ctx.Err() != nil {
		return fmt.Errorf("%w: %s: %w", ErrNotAcquired, key, context.Cause(ctx))
	}
	return fmt.Errorf("%w: %s: waited %v", ErrNotAcquired, key, wait)
}

func (t *Turns) enter(key string) *gate {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.gate == nil {
		t.gate = map[string]*gate{}
	}
	g := t.gate[key]
	if g == nil {
		g = &gate{slot: semaphore.NewWeighted(1)}
		t.gate[key] = g
	}
	g.uses++
	return g
}

func (t *Turns) forget(key string, g *gate) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if g.uses--; g.uses == 0 {
		delete(t.gate, key)
	}
}
