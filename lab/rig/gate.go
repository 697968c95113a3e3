package rig

import (
	"bytes"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/Shopify/toxiproxy/v2/stream"
	"github.com/Shopify/toxiproxy/v2/toxics"
)

const gateType = "gate"

// commandGate counts the commands of a lock, which it knows by the server's protocol, and of these only the ones that
// contain Text. It lets the ones before Nth pass. It holds back the Nth command with all that follows it on its connection, and later commands.
// With Watch, it holds nothing back.
type commandGate struct {
	Server string `json:"server"`
	Text   string `json:"text"`
	Nth    int    `json:"nth"`
	Watch  bool   `json:"watch"`

	leader atomic.Pointer[commandGate] // of the gates that count together; nil in a gate that counts alone
	made   sync.Once
	free   chan struct{}

	mu    sync.Mutex
	count int
	first string // the name of the command that was held back first
}

// arriving is what has arrived on a connection, and has not been forwarded.
type arriving struct {
	data  []byte
	held  bool
	ended bool // the client has closed the connection; its commands are still delivered
}

// NewState implements [toxics.StatefulToxic].
func (*commandGate) NewState() any { return new(arriving) }

// lead returns the gate that counts.
func (g *commandGate) lead() *commandGate {
	if leader := g.leader.Load(); leader != nil {
		return leader
	}
	return g
}

// delivery returns the channel that is closed at Deliver.
func (g *commandGate) delivery() chan struct{} {
	g = g.lead()
	g.made.Do(func() { g.free = make(chan struct{}) })
	return g.free
}

// Pipe implements [toxics.Toxic].
func (g *commandGate) Pipe(stub *toxics.ToxicStub) {
	a, _ := stub.State.(*arriving)
	for {
		free := g.delivery()
		input := stub.Input
		if a.ended {
			input = nil
		}
		if !a.held {
			free = nil
		}
		select {
		case <-stub.Interrupt:
			return
		case <-free:
			a.held = false
		case chunk := <-input:
			if chunk == nil {
				a.ended = true
			} else {
				a.data = append(a.data, chunk.Data...)
			}
		}
		if !g.forward(a, stub) {
			return
		}
		if a.ended && !a.held {
			if g.seen() { // PostgreSQL undoes a command whose client is gone before its answer
				select {
				case <-stub.Interrupt:
					return
				case <-time.After(time.Second):
				}
			}
			stub.Close()
			return
		}
	}
}

// Cleanup ends a connection whose commands are held back when the gate is removed. They are lost.
func (*commandGate) Cleanup(stub *toxics.ToxicStub) {
	if a, ok := stub.State.(*arriving); ok && len(a.data) > 0 {
		stub.Close()
		go drain(stub)
	}
}

// forward returns false if it was interrupted.
func (g *commandGate) forward(a *arriving, stub *toxics.ToxicStub) bool {
	for !a.held && len(a.data) > 0 {
		n, name := protocolOf(g.Server)(a.data)
		if n == 0 && !a.ended {
			return true // the rest of the command follows
		}
		if n == 0 {
			n = len(a.data)
		}
		if g.passes(name, a.data[:n]) {
			chunk := &stream.StreamChunk{Data: slices.Clone(a.data[:n])}
			if a.data = a.data[n:]; !send(stub, chunk) {
				return false
			}
		} else {
			a.held = true
		}
	}
	return true
}

func (g *commandGate) passes(name string, command []byte) bool {
	g = g.lead()
	free := g.delivery()
	g.mu.Lock()
	defer g.mu.Unlock()
	if isClosed(free) || name == "" || !bytes.Contains(command, []byte(g.Text)) {
		return true
	}
	if g.Text != "" && strings.HasSuffix(name, "SUBSCRIBE") { // of Redis: one for all strategies of a replica
		return true
	}
	g.count++
	if g.count == g.Nth {
		g.first = name
	}
	return g.Watch || g.count < g.Nth
}

// seen reports whether the Nth command has arrived.
func (g *commandGate) seen() bool { return g != nil && (&HeldCommand{g.lead()}).Name() != "" }

// HeldCommand is a command that a link holds back.
type HeldCommand struct{ gate *commandGate }

// HoldCommand holds back the nth command of a lock, from 1. With a text, only commands that contain it count: other
// strategies of the client's may run. Later commands, and all that follows on the same
// connection, wait behind it. Restore loses them.
func (l *Link) HoldCommand(text string, nth int) (*HeldCommand, error) {
	return l.gate(text, nth, false)
}

// HoldCommandOn is HoldCommand on several links, whose commands count together: a client of etcd sends each command to
// another member.
func HoldCommandOn(links []*Link, text string, nth int) (*HeldCommand, error) {
	first, err := links[0].HoldCommand(text, nth)
	for _, l := range links[1:] {
		if err != nil {
			break
		}
		var other *HeldCommand
		if other, err = l.HoldCommand(text, nth); err == nil {
			other.gate.leader.Store(first.gate)
		}
	}
	return first, err
}

func (l *Link) gate(text string, nth int, watch bool) (*HeldCommand, error) {
	l.changing.Lock()
	defer l.changing.Unlock()
	server := l.to
	if text == StockTable {
		server = text
	}
	if err := l.add(gateType, gateType, "upstream", &commandGate{Server: server, Text: text, Nth: nth, Watch: watch}); err != nil {
		return nil, err
	}
	g, _ := l.proxy.Toxics.GetToxic(gateType).Toxic.(*commandGate)
	return &HeldCommand{g}, nil
}

// LoseAnswer drops the answer to the nth command of a lock, as HoldCommand counts them. The server has executed it
// by then. The connection ends. The result names the command.
func (l *Link) LoseAnswer(text string, nth int) (*HeldCommand, error) {
	seen, err := l.gate(text, nth, true)
	if err != nil {
		return nil, err
	}
	if err := l.lose(&loss{Gated: true}); err != nil {
		return nil, err
	}
	l.armed().gate.Store(seen.gate)
	return seen, nil
}

// Count returns the number of commands that have arrived.
func (h *HeldCommand) Count() int {
	h.gate.mu.Lock()
	defer h.gate.mu.Unlock()
	return h.gate.count
}

// Name returns the name of the command that is held back, such as DEL, or "" before it has arrived.
func (h *HeldCommand) Name() string {
	h.gate.mu.Lock()
	defer h.gate.mu.Unlock()
	return h.gate.first
}

// Deliver delivers all that was held back, also on connections that the client has closed.
func (h *HeldCommand) Deliver() {
	free := h.gate.delivery()
	h.gate.mu.Lock()
	defer h.gate.mu.Unlock()
	if !isClosed(free) {
		close(free)
	}
}
