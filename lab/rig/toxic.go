package rig

import (
	"bytes"
	"sync"

	"github.com/Shopify/toxiproxy/v2/toxics"
)

// The types of our toxics, by which toxiproxy finds them.
const (
	holeType = "hole"
	lossType = "lost reply"
)

// registerToxics makes our toxics known to toxiproxy. It may be called again.
func registerToxics() {
	toxics.Register(holeType, new(hole))
	toxics.Register(lossType, new(loss))
}

// hole drops all data until it is removed. Toxiproxy's own toxic timeout passes the end of a
// connection on, so MySQL would roll the transaction of a disconnected client back at once.
// After a real cut it does not notice.
type hole struct{}

// Pipe implements [toxics.Toxic].
func (*hole) Pipe(stub *toxics.ToxicStub) {
	in := stub.Input
	for {
		select {
		case <-stub.Interrupt:
			return
		case chunk := <-in:
			if chunk == nil {
				in = nil // the end is dropped, too
			}
		}
	}
}

// Cleanup ends the connection when the hole is removed, because data are missing in it.
func (*hole) Cleanup(stub *toxics.ToxicStub) {
	stub.Close()
	go drain(stub)
}

// drain reads the remaining data, so that the sender notices the end of its connection.
func drain(stub *toxics.ToxicStub) {
	for range stub.Input {
		continue
	}
}

// loss drops the first reply that contains Text, of all connections, and ends its connection.
type loss struct {
	Text string `json:"text"`

	making sync.Once
	taking sync.Once
	done   chan struct{}
}

// lost is closed when a reply is lost.
func (l *loss) lost() chan struct{} {
	l.making.Do(func() { l.done = make(chan struct{}) }) // toxiproxy makes zero values only
	return l.done
}

// Pipe implements [toxics.Toxic].
func (l *loss) Pipe(stub *toxics.ToxicStub) {
	for {
		select {
		case <-stub.Interrupt:
			return
		case chunk := <-stub.Input:
			switch {
			case chunk == nil:
				stub.Close()
				return
			case bytes.Contains(chunk.Data, []byte(l.Text)) && l.take():
				stub.Close()
				drain(stub)
				return
			}
			stub.Output <- chunk
		}
	}
}

// take is true once.
func (l *loss) take() (first bool) {
	l.taking.Do(func() { first = true; close(l.lost()) })
	return first
}
