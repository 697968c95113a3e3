package history

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// Event is a step of one request, such as "granted", as its replica reported it.
type Event struct {
	Replica  string        `json:"replica"`
	Strategy string        `json:"strategy"`
	Step     string        `json:"step"` // an api.Step, or a step of this strategy only
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
