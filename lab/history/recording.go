package history

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"oversell/api"
)

// Event is a step of one request, such as "granted", as its replica reported it.
type Event struct {
	Replica  string        `json:"replica"`
	Strategy string        `json:"strategy"`
	Step     api.Step      `json:"step"` // one of the constants of api, or a step of this strategy only
	Key      string        `json:"key"`
	Owner    string        `json:"owner"` // identifies one request
	Fence    int64         `json:"fence,omitempty"`
	At       time.Duration `json:"at"` // since the recording began, in ns
}

// Span is the time of a fault.
type Span struct {
	What string        `json:"what"` // such as "killed"
	Who  string        `json:"who"`  // the affected server, such as replica-1
	From time.Duration `json:"from"` // since the recording began, in ns
	To   time.Duration `json:"to"`
}

// Kind is what a fault does, as far as a verdict or a picture depends on it.
type Kind string

// The kinds of faults. Others has the faults whose kind changes nothing.
const (
	Killed        Kind = "killed"         // a process ended
	Frozen        Kind = "frozen"         // a process was stopped, and its connections stayed open
	CutOff        Kind = "cut off"        // a link was silent
	ClockJumped   Kind = "clock jumped"   // by Span.Jump
	StatementHeld Kind = "statement held" // on its way to the row: no lease ends by it
	Others        Kind = ""
)

// These are the texts of Span.What that have a kind. Package fault and the player write them, and recordings have them.
const (
	kill, stop, cut, jump = "kill", "stop", "cut from ", "clock jumps by "
	// HeldStatement is the text of StatementHeld.
	HeldStatement = "statement held back"
)

// Kind returns the kind of the fault. It is the only place that reads What.
func (s Span) Kind() Kind {
	switch {
	case strings.HasPrefix(s.What, kill):
		return Killed
	case strings.HasPrefix(s.What, stop):
		return Frozen
	case strings.HasPrefix(s.What, cut):
		return CutOff
	case strings.HasPrefix(s.What, jump):
		return ClockJumped
	case s.What == HeldStatement:
		return StatementHeld
	}
	return Others
}

// Jump returns by how much a clock jumped, such as "1h0m0s".
func (s Span) Jump() string { return strings.TrimPrefix(s.What, jump) }

// OnReplica reports whether the fault struck a replica, or its links, and no server of the lock.
func (s Span) OnReplica() bool { return strings.HasPrefix(s.Who, "replica-") }

// Recording is what an experiment recorded of one strategy. All durations are since Start.
type Recording struct {
	Start  time.Time
	Stock  int           // pieces in stock at the start; 0 means that it is not known
	Lease  time.Duration // of the lock, in ns; 0 for a lock without a lease, and in old recordings
	Renews bool          // a holder renews its lease
	Ops    []Op          // in the order of Call
	Events []Event       // in the order of At
	Spans  []Span
}

// Decompress reads a recording of docs/recorded, which is compressed JSON, into the value at to.
func Decompress(compressed []byte, to any) error {
	in, err := gzip.NewReader(bytes.NewReader(compressed))
	if err != nil {
		return fmt.Errorf("read a recording: %w", err)
	}
	if err := json.NewDecoder(in).Decode(to); err != nil {
		return fmt.Errorf("read a recording: %w", err)
	}
	return nil
}
