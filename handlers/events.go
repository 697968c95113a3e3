package handlers

import (
	"sync"
	"sync/atomic"

	"github.com/gin-gonic/gin"

	"oversell/api"
)

// hub never waits: a slow listener loses steps, and receives their number before its next step.
type hub struct {
	mu        sync.Mutex
	listeners map[*listener]bool
	count     atomic.Int64
	closed    chan struct{}
}

type listener struct {
	steps  chan api.StepEvent
	missed atomic.Int64
}

func newHub() *hub { return &hub{listeners: map[*listener]bool{}, closed: make(chan struct{})} }

func (h *hub) watched() bool { return h.count.Load() > 0 }

func (h *hub) send(e api.StepEvent) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for l := range h.listeners {
		select {
		case l.steps <- e:
		default:
			l.missed.Add(1)
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

// streamEvents first sends "hello" with the name of the process. A listener that gets the same name
// again has lost the steps in between. "missed" has the number of steps that a slow listener lost.
func (s *Service) streamEvents(c *gin.Context) (any, error) {
	leave, err := s.openStream(c)
	if err != nil {
		return nil, err
	}
	defer leave()
	l := s.events.join()
	defer s.events.leave(l)
	c.SSEvent(api.StreamHello, gin.H{"replica": s.Replica, "process": s.boot})
	c.Writer.Flush() // at once: the listener receives every step after this event
	stream(c.Request.Context(), s, c, l.steps, func(e api.StepEvent) {
		if missed := l.missed.Swap(0); missed > 0 {
			c.SSEvent(api.StreamMissed, gin.H{"steps": missed})
		}
		c.SSEvent(api.StreamStep, e)
	})
	return written{}, nil
}
