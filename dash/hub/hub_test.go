package hub

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"oversell/api"
)

// TestSlowPageIsDropped checks that the hub disconnects a page that reads nothing, and that other
// pages do not wait for it. When the page connects again, it gets the complete state.
func TestSlowPageIsDropped(t *testing.T) {
	h := New()
	var said []string
	h.Open("run", func() []Message { return []Message{NewMessage("all", said)} })
	topic := h.topics["run"]
	slow, quick := h.join(topic), h.join(topic)
	<-quick
	const words = 3 * backlog
	for i := range words {
		h.Send("run", func() []Message {
			said = append(said, fmt.Sprint(i))
			return []Message{NewMessage("word", i)}
		})
		if m := <-quick; string(m.Data) != fmt.Sprint(i) {
			t.Fatalf("the quick page received %s instead of %d", m.Data, i)
		}
	}
	received := 0
	for range slow { // ends only if the hub has closed the channel
		received++
	}
	if received > backlog+1 {
		t.Errorf("the slow page was kept for %d messages", received)
	}
	if n := h.Listeners("run"); n != 1 {
		t.Errorf("%d pages are connected, not 1", n)
	}
	again := h.join(topic)
	if m := <-again; string(m.Data) != string(NewMessage("all", said).Data) || len(said) != words {
		t.Errorf("when it connects again it receives %s", m.Data)
	}
	h.leave(topic, slow) // as the page's handler does when it ends
}

// TestSlowLineGetsEverything checks that a page on a slow network gets all first messages, even if
// the transfer takes longer than writeTimeout.
func TestSlowLineGetsEverything(t *testing.T) {
	h := New()
	long := strings.Repeat("x", 1<<20)
	h.Open("run", func() []Message { return []Message{NewMessage("all", long)} })
	const small = 16 << 10
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { h.Serve(w, r, "run") }))
	server.Config.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		_ = c.(*net.TCPConn).SetWriteBuffer(small) // or the system would buffer all data
		return ctx
	}
	server.Start()
	defer server.Close()
	defer h.Close()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	_ = conn.(*net.TCPConn).SetReadBuffer(small)
	fmt.Fprint(conn, "GET / HTTP/1.0\r\nHost: lab\r\n\r\n")
	// The test reads so slowly that the transfer lasts one second longer than writeTimeout.
	for got, slow := 0, make([]byte, len(long)/int((writeTimeout+time.Second)/(100*time.Millisecond))); got < len(long); {
		n, err := conn.Read(slow)
		if got += n; err != nil {
			t.Fatalf("it was cut off after %d of %d bytes: %v", got, len(long), err)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// TestPageInEveryOrder tries all orders of these events: a page is drawn, connects, and loses its
// stream; a run begins, changes, and ends; the lab restarts. After each event and after a new
// connection, the page must show the present state.
func TestPageInEveryOrder(t *testing.T) {
	const (
		drawn = iota
		joined
		lost
		begins
		changes
		ends
		restarts
		all
	)
	names := []string{"drawn", "joined", "lost", "begins", "changes", "ends", "restarts"}
	after := map[int]int{joined: drawn, lost: joined, changes: begins, ends: changes}
	walk := func(order []int) {
		var h *Hub
		var state string
		restart := func() {
			h, state = New(), "nothing"
			h.Open("run", func() []Message { return []Message{partOf(state)} })
		}
		restart()
		var listening chan Message
		shown := "" // there is no page yet
		listen := func() { listening = h.join(h.topics["run"]) }
		for i, what := range order {
			switch what {
			case drawn:
				shown = h.Parts("run")["p"].EN
			case joined:
				listen()
			case lost:
				h.leave(h.topics["run"], listening)
				listening = nil
			case restarts:
				restart()
				if listening != nil {
					listen() // the page connects again
				}
			default:
				h.Send("run", func() []Message { state = names[what]; return []Message{partOf(state)} })
			}
			for len(listening) > 0 {
				shown = (<-listening).part.EN
			}
			if (what == drawn || listening != nil) && shown != state {
				t.Errorf("%v: after %s it shows %q, not %q", order, names[order[i]], shown, state)
			}
		}
		if listen(); (<-listening).part.EN != state {
			t.Errorf("%v: it comes again and does not get %q", order, state)
		}
	}
	orders := 0
	var choose func(order []int)
	choose = func(order []int) {
		if len(order) == all {
			orders++
			walk(order)
			return
		}
		for next := range all {
			before, needs := after[next]
			if slices.Contains(order, next) || needs && !slices.Contains(order, before) {
				continue
			}
			choose(append(slices.Clone(order), next))
		}
	}
	choose(nil)
	if orders != 140 { // 7! / (3! 3!)
		t.Errorf("%d orders", orders)
	}
}

func partOf(state string) Message { return Replace(Part{"p", api.Text{EN: state, ZH: state}}) }

// TestTooManyPages opens as many pages as a topic may have, and one more.
func TestTooManyPages(t *testing.T) {
	h := New()
	h.Open("run", func() []Message { return nil })
	for range maxPages {
		if h.join(h.topics["run"]) == nil {
			t.Fatal("rejected too early")
		}
	}
	w := httptest.NewRecorder()
	h.Serve(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil), "run")
	if w.Code != http.StatusServiceUnavailable || !strings.Contains(w.Body.String(), "close some") {
		t.Errorf("one more: %d %s", w.Code, w.Body)
	}
}
