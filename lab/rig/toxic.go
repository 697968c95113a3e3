package rig

import (
	"sync/atomic"
	"time"

	"github.com/Shopify/toxiproxy/v2/stream"
	"github.com/Shopify/toxiproxy/v2/toxics"
)

// The names under which addLink registers our two toxics. Toxic is Toxiproxy's word for a fault.
const (
	holeType = "hole"
	lossType = "lost reply"
)

// hole drops all data until it is removed. With Toxiproxy's toxic timeout, MySQL would see a lost
// client and roll back at once, which does not happen after a real cut.
type hole struct{ dropped atomic.Int64 } // bytes, and ends of connections

// Pipe implements [toxics.Toxic].
func (h *hole) Pipe(stub *toxics.ToxicStub) {
	in := stub.Input
	for {
		select {
		case <-stub.Interrupt:
			return
		case chunk := <-in:
			if chunk == nil {
				in = nil // the end is dropped, too
				h.dropped.Add(1)
			} else {
				h.dropped.Add(int64(len(chunk.Data)))
			}
		}
	}
}

// Cleanup ends the connection when the hole is removed, because data are missing in it.
func (*hole) Cleanup(stub *toxics.ToxicStub) {
	stub.Close()
	go drain(stub)
}

// drain reads and discards the rest of the input. Otherwise the goroutine that writes it would block, and would not notice
// that the connection is closed.
func drain(stub *toxics.ToxicStub) {
	for range stub.Input {
		continue
	}
}

// loss drops a reply, and ends its connection: the first on each connection that is open, or with Gated only the first
// after the command of gate. Only one client of the link has requests then. With Now, it ends each open connection
// without waiting for a reply.
type loss struct {
	Gated bool `json:"gated"`
	Now   bool `json:"now"`
	gate  atomic.Pointer[commandGate]
	lost  atomic.Bool
	over  atomic.Bool // connections that open from now on lose nothing
}

// Pipe implements [toxics.Toxic].
func (l *loss) Pipe(stub *toxics.ToxicStub) {
	armed := !l.over.Load()
	if armed && l.Now {
		l.lost.Store(true)
		stub.Close()
		drain(stub)
		return
	}
	for {
		select {
		case <-stub.Interrupt:
			return
		case chunk := <-stub.Input:
			if chunk == nil {
				stub.Close()
				return
			}
			if armed && l.drops() {
				stub.Close()
				drain(stub)
				return
			}
			if !send(stub, chunk) {
				return
			}
		}
	}
}

// send forwards data. It returns false if the toxic was interrupted meanwhile. The connection may have ended, and nothing
// reads its data any more: then they are lost.
func send(stub *toxics.ToxicStub, chunk *stream.StreamChunk) bool {
	select {
	case stub.Output <- chunk:
		return true
	case <-stub.Interrupt:
		_ = stub.WriteOutput(chunk, 5*time.Second)
		return false
	}
}

func (l *loss) drops() bool {
	if l.Gated {
		return l.gate.Load().seen() && l.lost.CompareAndSwap(false, true)
	}
	l.lost.Store(true)
	return true
}
