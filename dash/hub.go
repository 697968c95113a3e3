package dash

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"time"
)

// hub sends changes to all open pages, and never waits for a page. It disconnects a page that reads
// too slowly. The browser then connects again and gets the complete state.
type hub struct {
	mu     sync.Mutex
	topics map[string]*topic
	closed chan struct{}
}

// topic has the streams of all open pages of one kind.
type topic struct {
	// first returns the complete state. The hub's mutex is locked, so a page gets each change once.
	first func() []message
	pages map[chan message]bool
}

// message is a server-sent event. Its data is JSON.
type message struct {
	name string
	data []byte
	part *part // the part that the message replaces, or nil
}

// backlog is the number of unsent messages above which the hub disconnects a page.
const backlog = 64

func newHub() *hub { return &hub{topics: map[string]*topic{}, closed: make(chan struct{})} }

func (h *hub) open(name string, first func() []message) {
	h.topics[name] = &topic{first: first, pages: map[chan message]bool{}}
}

// send sends the messages of change to all pages of the topic. The hub's mutex is locked in every
// change and each topic's first: they need no mutex, and a page that connects misses no change.
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

// parts returns the parts in the topic's first messages. They complete a page before its stream.
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
	// writeTimeout limits the time in which the hub writes one piece of a stream to a page.
	writeTimeout = 5 * time.Second
	// pieceSize is the length of a piece, which even a slow network can transfer in time. The first
	// messages are long: one time limit for all of them could disconnect a page again and again.
	pieceSize = 16 << 10
)

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

func (m message) write(text *bytes.Buffer) {
	fmt.Fprintf(text, "event: %s\ndata: %s\n\n", m.name, m.data)
}

func newMessage(name string, data any) message {
	text, err := json.Marshal(data)
	if err != nil {
		text = []byte("null") // impossible: our own types have JSON
	}
	return message{name: name, data: text}
}
