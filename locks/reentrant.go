package locks

import (
	"context"
	"sync"
)

// Reentrant lets an owner acquire again what it holds in this process, without
// asking the backend: it gets the same Hold once more, with its lease, fence
// and loss, and the lock is given back with the last release (Curator's
// InterProcessMutex counts so, too). Two rivals must never share an Owner.
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
	// A hold that was lost is not entered again: the owner waits like others. Nor
	// is one for a caller that is gone.
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

// Clear passes on: a decorator must not hide what its locker can do.
func (l *reentrant) Clear(ctx context.Context, key string) error { return clearOf(ctx, l.Locker, key) }
