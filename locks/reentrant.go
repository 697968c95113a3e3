package locks

import (
	"context"
	"sync"
)

// Reentrant decorates a Locker. An owner may acquire again a lock that it holds. The owner gets the
// same Lock, and the last Release frees the lock (as in Curator's InterProcessMutex). The backend
// gets no request, except the count and the lease of a Grant that asks for it. Two requests that compete must never have the same Owner.
func Reentrant(l Locker) Locker { return &reentrant{decorated: decorated{l}, held: map[holder]*Lock{}} }

type reentrant struct {
	decorated
	mu   sync.Mutex
	held map[holder]*Lock
}

type holder struct{ key, owner string }

func (l *reentrant) Acquire(ctx context.Context, r Request) (*Lock, error) {
	id := holder{r.Key, r.Owner}
	l.mu.Lock()
	h := l.held[id]
	l.mu.Unlock()
	// An owner that lost its lock must wait like any other. A cancelled request gets no lock.
	if h != nil && ctx.Err() == nil && h.Verify() == nil && h.enter(ctx) {
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
