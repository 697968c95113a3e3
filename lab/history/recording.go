package history

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
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

// entry is one line of a recording's file. A line has one of these fields, or Start and what belongs to it.
type entry struct {
	Start  *time.Time    `json:"start,omitempty"`
	Stock  int           `json:"stock,omitempty"`
	Lease  time.Duration `json:"lease,omitempty"`
	Renews bool          `json:"renews,omitempty"`
	Op     *Op           `json:"op,omitempty"`
	Event  *Event        `json:"event,omitempty"`
	Span   *Span         `json:"span,omitempty"`
}

// Write writes the recording as JSON lines.
func (r Recording) Write(w io.Writer) error {
	entries := []entry{{Start: &r.Start, Stock: r.Stock, Lease: r.Lease, Renews: r.Renews}}
	for i := range r.Spans {
		entries = append(entries, entry{Span: &r.Spans[i]})
	}
	for i := range r.Ops {
		entries = append(entries, entry{Op: &r.Ops[i]})
	}
	for i := range r.Events {
		entries = append(entries, entry{Event: &r.Events[i]})
	}
	out := json.NewEncoder(w)
	for _, e := range entries {
		if err := out.Encode(e); err != nil {
			return fmt.Errorf("write the recording: %w", err)
		}
	}
	return nil
}

// ReadRecording reads a recording that Write has written.
func ReadRecording(r io.Reader) (rec Recording, err error) {
	in := json.NewDecoder(bufio.NewReader(r))
	for {
		var e entry
		switch err := in.Decode(&e); {
		case errors.Is(err, io.EOF):
			return rec, nil
		case err != nil:
			return rec, fmt.Errorf("read the recording: %w", err)
		case e.Start != nil:
			rec.Start, rec.Stock, rec.Lease, rec.Renews = *e.Start, e.Stock, e.Lease, e.Renews
		case e.Op != nil:
			rec.Ops = append(rec.Ops, *e.Op)
		case e.Event != nil:
			rec.Events = append(rec.Events, *e.Event)
		case e.Span != nil:
			rec.Spans = append(rec.Spans, *e.Span)
		}
	}
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
