// Package hub sends changes to all open pages, as server-sent events. Its mutex also protects the state that the
// pages show, so a page that connects misses no change, and gets none twice.
package hub

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"time"

	"oversell/api"
)

// Hub sends changes to all open pages, and never waits for a page. It disconnects a page that reads
// too slowly. The browser then connects again and gets the complete state.
type Hub struct {
	mu     sync.Mutex
	topics map[string]*topic
	closed chan struct{}
}

// topic has the streams of all open pages of one kind.
type topic struct {
	// first returns the complete state. The hub's mutex is locked, so a page gets each change once.
	first func() []Message
	pages map[chan Message]bool
}

// Message is a server-sent event.
type Message struct {
	Name string
	Data []byte // JSON
	part *Part  // the part that the message replaces, or nil
}

// Part is the content of an element of a page, by the element's id.
type Part struct {
	ID string `json:"id"`
	api.Text
}

// maxPages limits the open pages of a topic. Each costs memory, and none needs the token.
const maxPages = 1000

// backlog is the number of unsent messages above which the hub disconnects a page.
const backlog = 64

// New returns a Hub without topics.
func New() *Hub { return &Hub{topics: map[string]*topic{}, closed: make(chan struct{})} }

// Open adds a topic. All topics must be open before the first page connects. first returns the
// complete state, which a page gets when it connects.
func (h *Hub) Open(name string, first func() []Message) {
	h.topics[name] = &topic{first: first, pages: map[chan Message]bool{}}
}

// Send sends the messages of change to all pages of the topic. The hub's mutex is locked in every
// change and each topic's first: they need no mutex, and a page that connects misses no change.
func (h *Hub) Send(name string, change func() []Message) {
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

// Do calls do while the mutex is locked, and sends nothing.
func (h *Hub) Do(do func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	do()
}

// Listeners returns the number of pages that are connected to a topic.
func (h *Hub) Listeners(name string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.topics[name].pages)
}

// join returns nil if too many pages are open.
func (h *Hub) join(t *topic) chan Message {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(t.pages) >= maxPages {
		return nil
	}
	first := t.first()
	page := make(chan Message, backlog+len(first))
	for _, m := range first {
		page <- m
	}
	t.pages[page] = true
	return page
}

func (h *Hub) leave(t *topic, page chan Message) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(t.pages, page)
}

// Parts returns the parts in the topic's first messages. They complete a page before its stream.
func (h *Hub) Parts(name string) map[string]api.Text {
	h.mu.Lock()
	defer h.mu.Unlock()
	parts := map[string]api.Text{}
	for _, m := range h.topics[name].first() {
		if m.part != nil {
			parts[m.part.ID] = m.part.Text
		}
	}
	return parts
}

// Close ends all streams.
func (h *Hub) Close() { close(h.closed) }

const (
	// writeTimeout limits the time in which the hub writes one piece of a stream to a page.
	writeTimeout = 5 * time.Second
	// pieceSize is the length of a piece, which even a slow network can transfer in time. The first
	// messages are long: one time limit for all of them could disconnect a page again and again.
	pieceSize = 16 << 10
)

// Serve sends the messages of a topic to a page, until the page or the Hub closes the stream.
func (h *Hub) Serve(w http.ResponseWriter, r *http.Request, name string) {
	t := h.topics[name]
	if t == nil {
		http.NotFound(w, r)
		return
	}
	page := h.join(t)
	if page == nil {
		http.Error(w, fmt.Sprintf("%d pages are open, as many as this lab serves: close some.", maxPages), http.StatusServiceUnavailable)
		return
	}
	defer h.leave(t, page)
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Accel-Buffering", "no")
	out := http.NewResponseController(w)
	var text bytes.Buffer
	fmt.Fprint(&text, "retry: 1000\n\n") // tells the browser to connect again after 1 s
	alive := time.NewTicker(10 * time.Second)
	defer alive.Stop()
	for {
		for text.Len() > 0 {
			_ = out.SetWriteDeadline(time.Now().Add(writeTimeout))
			if _, err := w.Write(text.Next(pieceSize)); err != nil {
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
			for range len(page) { // write all waiting messages together
				if m, open = <-page; open {
					m.write(&text)
				}
			}
		case <-alive.C:
			fmt.Fprint(&text, "event: alive\ndata: {}\n\n") // the script would not see a comment
		case <-h.closed:
			return
		case <-r.Context().Done():
			return
		}
	}
}

func (m Message) write(text *bytes.Buffer) {
	fmt.Fprintf(text, "event: %s\ndata: %s\n\n", m.Name, m.Data)
}

// NewMessage returns a message with the data as JSON.
func NewMessage(name string, data any) Message {
	text, err := json.Marshal(data)
	if err != nil {
		text = []byte("null") // impossible: our own types have JSON
	}
	return Message{Name: name, Data: text}
}

// Replace returns a message that replaces a part of the open pages.
func Replace(p Part) Message {
	m := NewMessage("part", p)
	m.part = &p
	return m
}
