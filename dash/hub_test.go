package dash

import (
	"fmt"
	"testing"
)

// A page that reads nothing is hung up on, and holds nobody up; when it comes again it is
// told everything.
func TestSlowPageIsDropped(t *testing.T) {
	h := newHub()
	var said []string
	h.open("run", func() []message { return []message{say("all", said)} })
	topic := h.topics["run"]
	slow, quick := h.join(topic), h.join(topic)
	<-quick
	const words = 3 * backlog
	for i := range words {
		h.send("run", func() []message {
			said = append(said, fmt.Sprint(i))
			return []message{say("word", i)}
		})
		if m := <-quick; string(m.data) != fmt.Sprint(i) {
			t.Fatalf("the quick page hears %s instead of %d", m.data, i)
		}
	}
	heard := 0
	for range slow { // it is closed, or this would wait for ever
		heard++
	}
	if heard > backlog+1 {
		t.Errorf("the slow page was kept for %d messages", heard)
	}
	if n := h.listeners("run"); n != 1 {
		t.Errorf("%d pages are listened to, not 1", n)
	}
	again := h.join(topic)
	if m := <-again; string(m.data) != string(say("all", said).data) || len(said) != words {
		t.Errorf("when it comes again it hears %s", m.data)
	}
	h.leave(topic, slow) // as its handler does at its end
}
