package locks

import (
	"context"
	"sync"
)

// Heir is the task of this process that has its turn next. Where the backend can do it
// in one question, a release makes it the holder instead of freeing the lock for it.
type Heir struct {
	Request Request
	ctx     context.Context

	mu   sync.Mutex
	hold *Lock
	gone bool // it has its turn, or has hung up
	turn bool // it has its turn
}

// behind is the heir of this one, once it has its turn: before, others come first.
func (h *Heir) behind(t *FIFOMutex) *Heir {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.turn {
		return nil
	}
	return t.heir(h.Request.Key)
}

// Inherit makes the grant the heir's. False: the heir is gone, and the grant is to be
// given back.
func (h *Heir) Inherit(g Grant) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.gone || h.ctx.Err() != nil {
		return false
	}
	h.hold = NewLock(h.ctx, g)
	return true
}

// settle ends the time in which the heir can inherit, and returns what it got. Without
// its turn it has hung up, and gives that back.
func (h *Heir) settle(turn bool) *Lock {
	h.mu.Lock()
	h.gone, h.turn = true, turn
	hold := h.hold
	h.mu.Unlock()
	if hold != nil && !turn {
		_ = hold.Release(h.ctx)
		return nil
	}
	return hold
}
