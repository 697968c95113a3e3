package handlers

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gin-gonic/gin"

	"oversell/api"
	"oversell/locks"
)

// hub sends every step to every listener. It never waits: a listener that reads too
// slowly loses steps, and receives their number before the next one.
type hub struct {
	process   string // names this process, so that a listener can recognise it
	mu        sync.Mutex
	listeners map[*listener]bool
	count     atomic.Int64
	closed    chan struct{}
}

type listener struct {
	steps  chan api.StepEvent
	missed atomic.Int64
}

func newHub() *hub {
	return &hub{
		process:   strconv.FormatInt(time.Now().UnixNano(), 36),
		listeners: map[*listener]bool{}, closed: make(chan struct{}),
	}
}

// watched says whether anybody listens; if not, steps cost nothing.
func (h *hub) watched() bool { return h.count.Load() > 0 }

func (h *hub) tracer(replica, strategy string) locks.Tracer {
	return func(_ context.Context, e api.Event) {
		h.mu.Lock()
		defer h.mu.Unlock()
		for l := range h.listeners {
			select {
			case l.steps <- api.StepEvent{Replica: replica, Strategy: strategy, Event: e}:
			default:
				l.missed.Add(1)
			}
		}
	}
}

func (h *hub) join() *listener {
	l := &listener{steps: make(chan api.StepEvent, 1024)}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.listeners[l] = true
	h.count.Add(1)
	return l
}

func (h *hub) leave(l *listener) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.listeners, l)
	h.count.Add(-1)
}

func (h *hub) close() { close(h.closed) }

// streamEvents sends the steps of this replica. It begins with "hello" and the name of the
// process: a listener that comes back to the same process has lost the steps in between.
// "missed" has the number of steps that the listener lost because it read too slowly.
func (s *Service) streamEvents(c *gin.Context) {
	leave, ok := s.mayStream(c)
	if !ok {
		return
	}
	defer leave()
	l := s.events.join()
	defer s.events.leave(l)
	c.Header("Cache-Control", "no-store")
	c.Header("X-Accel-Buffering", "no")
	c.SSEvent(api.StreamHello, gin.H{"replica": s.Replica, "process": s.events.process})
	c.Writer.Flush() // now, not with the first step: from here on the listener misses none
	stream(c.Request.Context(), s, c, l.steps, func(e api.StepEvent) {
		if missed := l.missed.Swap(0); missed > 0 {
			c.SSEvent(api.StreamMissed, gin.H{"steps": missed})
		}
		c.SSEvent(api.StreamStep, e)
	})
}
