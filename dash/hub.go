package dash

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"time"
)

// hub sends what happens to every open page. It never waits for one: a page that reads
// too slowly is hung up on. Its browser connects again by itself, and is told all that it
// missed by the topic's first words.
type hub struct {
	mu     sync.Mutex
	topics map[string]*topic
	closed chan struct{}
}

// topic is what the pages of one kind listen to.
type topic struct {
	// first tells a new page everything so far. It is called while nothing can be sent, so
	// that a page misses nothing and hears nothing twice.
	first func() []message
	pages map[chan message]bool
}

// message is an event for a page: its name, and its data in JSON.
type message struct {
	name string
	data []byte
	part *part // that it is about; nil: none
}

// backlog is how many messages a page may be behind.
const backlog = 64

func newHub() *hub { return &hub{topics: map[string]*topic{}, closed: make(chan struct{})} }

// open makes a topic.
func (h *hub) open(name string, first func() []message) {
	h.topics[name] = &topic{first: first, pages: map[chan message]bool{}}
}

// send changes what a topic tells of, and sends what the change has to say to all its
// pages. A page that comes meanwhile hears of it by its first words or by these, not by
// both. Whatever first and change read is theirs to read and write only here.
func (h *hub) send(name string, change func() []message) {
	h.mu.Lock()
	defer h.mu.Unlock()
	t := h.topics[name]
	for _, m := range change() {
		for page := range t.pages {
			select {
			case page <- m:
			default:
				delete(t.pages, page)
				close(page)
			}
		}
	}
}

// listeners is how many pages of a topic are open.
func (h *hub) listeners(name string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.topics[name].pages)
}

func (h *hub) join(t *topic) chan message {
	h.mu.Lock()
	defer h.mu.Unlock()
	first := t.first()
	page := make(chan message, backlog+len(first))
	for _, m := range first {
		page <- m
	}
	t.pages[page] = true
	return page
}

func (h *hub) leave(t *topic, page chan message) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(t.pages, page)
}

// parts are those of the topic's first messages, by their ids. A page is drawn with them, so
// that it is right before its stream begins, and without one.
func (h *hub) parts(name string) map[string]Text {
	h.mu.Lock()
	defer h.mu.Unlock()
	parts := map[string]Text{}
	for _, m := range h.topics[name].first() {
		if m.part != nil {
			parts[m.part.ID] = m.part.Text
		}
	}
	return parts
}

func (h *hub) close() { close(h.closed) }

const (
	// slowest is how long a page may take to accept a piece of what it is sent.
	slowest = 5 * time.Second
	// piece is so small that a slow network takes it in that time. The first messages are
	// long: a limit for all of them together would cut them off at each new connection.
	piece = 16 << 10
)

// serve is a page's stream.
func (h *hub) serve(w http.ResponseWriter, r *http.Request, name string) {
	t := h.topics[name]
	if t == nil {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Accel-Buffering", "no")
	out := http.NewResponseController(w)
	page := h.join(t)
	defer h.leave(t, page)
	var text bytes.Buffer
	fmt.Fprint(&text, "retry: 1000\n\n") // after a hang-up, or when the lab is back
	alive := time.NewTicker(10 * time.Second)
	defer alive.Stop()
	for {
		for text.Len() > 0 {
			_ = out.SetWriteDeadline(time.Now().Add(slowest))
			if _, err := w.Write(text.Next(piece)); err != nil {
				return
			}
			if err := out.Flush(); err != nil {
				return
			}
		}
		select {
		case m, open := <-page:
			if !open {
				return
			}
			m.write(&text)
			for range len(page) { // all that is there goes out together
				if m, open = <-page; open {
					m.write(&text)
				}
			}
		case <-alive.C:
			fmt.Fprint(&text, "event: alive\ndata: {}\n\n") // no script sees a comment
		case <-h.closed:
			return
		case <-r.Context().Done():
			return
		}
	}
}

func (m message) write(text *bytes.Buffer) {
	fmt.Fprintf(text, "event: %s\ndata: %s\n\n", m.name, m.data)
}

// say makes a message of anything.
func say(name string, what any) message {
	data, err := json.Marshal(what)
	if err != nil {
		data = []byte("null") // our own types: they have JSON
	}
	return message{name: name, data: data}
}
