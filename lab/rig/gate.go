package rig

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/Shopify/toxiproxy/v2/stream"
	"github.com/Shopify/toxiproxy/v2/toxics"
	"github.com/alicebob/miniredis/v2/proto"
)

const gateType = "gate"

// commandGate counts the Redis commands that contain Text. It lets the ones before Nth pass. It holds back
// the Nth command with all that follows it on its connection, and later commands that contain Text.
type commandGate struct {
	Text string `json:"text"`
	Nth  int    `json:"nth"`

	made       sync.Once
	held, free chan struct{}

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

func (g *commandGate) channels() (held, free chan struct{}) {
	g.made.Do(func() { g.held, g.free = make(chan struct{}), make(chan struct{}) })
	return g.held, g.free
}

// Pipe implements [toxics.Toxic].
func (g *commandGate) Pipe(stub *toxics.ToxicStub) {
	a, _ := stub.State.(*arriving)
	_, opened := g.channels()
	for {
		input, free := stub.Input, opened
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
		g.forward(a, stub)
		if a.ended && !a.held {
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

func (g *commandGate) forward(a *arriving, stub *toxics.ToxicStub) {
	for !a.held && len(a.data) > 0 {
		n := commandLength(a.data)
		if n == 0 && !a.ended {
			return // the rest of the command follows
		}
		if n == 0 {
			n = len(a.data)
		}
		if command := a.data[:n]; g.passes(command) {
			stub.Output <- &stream.StreamChunk{Data: slices.Clone(command)}
			a.data = a.data[n:]
		} else {
			a.held = true
		}
	}
}

func (g *commandGate) passes(command []byte) bool {
	held, free := g.channels()
	g.mu.Lock()
	defer g.mu.Unlock()
	select {
	case <-free:
		return true
	default:
	}
	if !bytes.Contains(command, []byte(g.Text)) {
		return true
	}
	g.count++
	if g.count == g.Nth {
		g.first = commandName(command)
		close(held)
	}
	return g.count < g.Nth
}

// commandLength returns the length of the first command of Redis in data, or 0 if the command is
// not complete. Data that are no command count as a whole: the gate was opened in mid-command.
func commandLength(data []byte) int {
	command, err := proto.Read(bufio.NewReader(bytes.NewReader(data)))
	switch {
	case errors.Is(err, io.EOF):
		return 0
	case err != nil || data[0] != '*':
		return len(data)
	}
	return len(command)
}

// commandName returns the first word of a command, such as DEL.
func commandName(command []byte) string {
	words, err := proto.ReadStrings(string(command))
	if err != nil || len(words) == 0 {
		return ""
	}
	return strings.ToUpper(words[0])
}

// HeldCommand is a command of Redis that a link holds back.
type HeldCommand struct{ gate *commandGate }

// HoldCommand holds back the nth command, from 1, that contains text. Later commands that contain
// text, and all that follows on the same connection, wait behind it. Restore loses them.
func (l *Link) HoldCommand(text string, nth int) (*HeldCommand, error) {
	l.changing.Lock()
	defer l.changing.Unlock()
	if err := l.add(gateType, gateType, "upstream", &commandGate{Text: text, Nth: nth}); err != nil {
		return nil, err
	}
	g, _ := l.proxy.Toxics.GetToxic(gateType).Toxic.(*commandGate)
	return &HeldCommand{g}, nil
}

// Held is closed when the command has arrived, and is held back.
func (h *HeldCommand) Held() <-chan struct{} {
	held, _ := h.gate.channels()
	return held
}

// Name returns the name of the command that is held back, such as DEL.
func (h *HeldCommand) Name() string {
	h.gate.mu.Lock()
	defer h.gate.mu.Unlock()
	return h.gate.first
}

// Deliver delivers all that was held back, also on connections that the client has closed.
func (h *HeldCommand) Deliver() {
	_, free := h.gate.channels()
	h.gate.mu.Lock()
	defer h.gate.mu.Unlock()
	select {
	case <-free:
	default:
		close(free)
	}
}
