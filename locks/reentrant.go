package locks

import (
	"context"
	"sync"
)

// Reentrant is a decorator that lets an owner acquire again what it holds in this process,
// without a request to the backend. The owner gets the same Lock once more, with its lease
// and fence; the last Release frees it (as in Curator's InterProcessMutex). Two tasks that
// compete must never have the same Owner.
func Reentrant(l Locker) Locker { return &reentrant{Locker: l, held: map[holder]*Lock{}} }

type reentrant struct {
	Locker
	mu   sync.Mutex
	held map[holder]*Lock
}

type holder struct{ key, owner string }

func (l *reentrant) Acquire(ctx context.Context, r Request) (*Lock, error) {
	id := holder{r.Key, r.Owner}
	l.mu.Lock()
	h := l.held[id]
	l.mu.Unlock()
	// Not after a loss: then the owner waits like others. Nor for a caller that has gone.
	if h != nil && ctx.Err() == nil && h.Verify() == nil && h.enter() {
		return h, nil
	}
	h, err := l.Locker.Acquire(ctx, r)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	l.held[id] = h
	l.mu.Unlock()
	h.OnRelease(func() { l.forget(id, h) })
	return h, nil
}

func (l *reentrant) forget(id holder, h *Lock) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.held[id] == h {
		delete(l.held, id)
	}
}

// Clear clears the inner locker.
func (l *reentrant) Clear(ctx context.Context, key string) error { return clearOf(ctx, l.Locker, key) }
