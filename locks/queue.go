package locks

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"oversell/stock"
)

// Queue puts one line per key in front of a shared lock: of all the waiters in
// this process only the first one troubles the backend. A hundred waiters on
// three replicas are then three to Redis or ZooKeeper, in order of arrival
// within a replica.
func Queue(l Locker) Locker { return &queue{Locker: l} }

type queue struct {
	Locker
	turns FIFOMutex
}

func (q *queue) Acquire(ctx context.Context, r Request) (*Lock, error) {
	began, heir := time.Now(), &Heir{ctx: ctx}
	r.Next = func() bool { return q.turns.Waiting(r.Key) }
	r.Heir = func() *Heir { return heir.behind(&q.turns) }
	heir.Request = r
	leave, err := q.turns.take(ctx, r.Key, r.Wait, heir)
	inherited := heir.settle(err == nil)
	if err != nil {
		return nil, err
	}
	if inherited != nil {
		inherited.OnRelease(leave)
		return inherited, nil
	}
	r.Wait = max(0, r.Wait-time.Since(began))
	h, err := q.Locker.Acquire(ctx, r)
	if errors.Is(err, stock.ErrUnavailable) {
		q.turns.Fail(r.Key, err)
	}
	if err != nil {
		leave()
		return nil, err
	}
	h.OnRelease(leave)
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

// FIFOMutex lets one task at a time pass for each key, in order of arrival, within
// this process. The zero value is ready.
type FIFOMutex struct {
	// Idle is told when a turn ended and nobody waited for the next; nil: nobody asks.
	Idle func(key string)

	mu sync.Mutex
	// line holds who waits, for every key whose turn is taken.
	line map[string][]waiter
}

// waiter gets the turn, or an error.
type waiter struct {
	turn chan error
	heir *Heir // nil: it can't inherit
}

// Take waits for the turn until ctx ends or wait has passed: ErrNotAcquired.
// With wait 0 it looks once. leave gives the turn to the next, once.
func (t *FIFOMutex) Take(ctx context.Context, key string, wait time.Duration) (leave func(), err error) {
	return t.take(ctx, key, wait, nil)
}

func (t *FIFOMutex) take(ctx context.Context, key string, wait time.Duration, heir *Heir) (leave func(), err error) {
	if ctx.Err() != nil { // a free turn would be taken all the same
		return nil, NotAcquired(ctx, key, wait)
	}
	turn := t.enter(key, heir)
	if turn != nil {
		timer := time.NewTimer(wait)
		defer timer.Stop()
		select {
		case err = <-turn:
		case <-timer.C:
			err = t.quit(ctx, key, turn, wait)
		case <-ctx.Done():
			err = t.quit(ctx, key, turn, wait)
		}
		if err != nil {
			return nil, err
		}
	}
	return sync.OnceFunc(func() { t.next(key) }), nil
}

// Waiting reports whether somebody waits for the key's turn.
func (t *FIFOMutex) Waiting(key string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.line[key]) > 0
}

// heir is the first of those who wait; nil: none, or one that can't inherit.
func (t *FIFOMutex) heir(key string) *Heir {
	t.mu.Lock()
	defer t.mu.Unlock()
	if line := t.line[key]; len(line) > 0 {
		return line[0].heir
	}
	return nil
}

// enter takes a free turn at once, or returns where to wait for it.
func (t *FIFOMutex) enter(key string, heir *Heir) (turn chan error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	waiting, taken := t.line[key]
	switch {
	case t.line == nil:
		t.line = map[string][]waiter{key: nil}
		return nil
	case !taken:
		t.line[key] = nil
		return nil
	}
	turn = make(chan error, 1)
	t.line[key] = append(waiting, waiter{turn, heir})
	return turn
}

// next gives the turn to the one who has waited longest.
func (t *FIFOMutex) next(key string) {
	t.mu.Lock()
	waiting := t.line[key]
	if len(waiting) == 0 {
		delete(t.line, key)
		t.mu.Unlock()
		if t.Idle != nil {
			t.Idle(key)
		}
		return
	}
	t.line[key] = waiting[1:]
	waiting[0].turn <- nil
	t.mu.Unlock()
}

// quit leaves the line. A turn that came at the last moment goes to the next.
func (t *FIFOMutex) quit(ctx context.Context, key string, turn chan error, wait time.Duration) error {
	t.mu.Lock()
	i := slices.IndexFunc(t.line[key], func(w waiter) bool { return w.turn == turn })
	if i >= 0 {
		t.line[key] = slices.Delete(t.line[key], i, i+1)
	}
	t.mu.Unlock()
	if i < 0 && <-turn == nil {
		t.next(key)
	}
	return NotAcquired(ctx, key, wait)
}

// Fail sends everybody in the line away with err: what the first has learned,
// the others need not learn one after the other.
func (t *FIFOMutex) Fail(key string, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, w := range t.line[key] {
		w.turn <- err
	}
	if _, taken := t.line[key]; taken {
		t.line[key] = nil
	}
}

// NotAcquired says which of the two clocks ended a wait for key.
func NotAcquired(ctx context.Context, key string, wait time.Duration) error {
	if ctx.Err() != nil {
		return fmt.Errorf("%w: %s: %w", ErrNotAcquired, key, context.Cause(ctx))
	}
	return fmt.Errorf("%w: %s: waited %v", ErrNotAcquired, key, wait)
}
