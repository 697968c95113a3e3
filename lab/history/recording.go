package history

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

// Event is a step of one owner, as its replica reported it.
type Event struct {
	Replica  string        `json:"replica"`
	Strategy string        `json:"strategy"`
	Step     string        `json:"step"` // asked, granted, read, writing, written, released, or the strategy's own
	Key      string        `json:"key"`
	Owner    string        `json:"owner"` // one task
	Fence    int64         `json:"fence,omitempty"`
	At       time.Duration `json:"at"` // since the recording began, in ns
}

// Span is when something lasted: a fault, or a replica's absence.
type Span struct {
	What string        `json:"what"` // such as "replica-1 stopped"
	Who  string        `json:"who"`  // the server it happened to, such as replica-1
	From time.Duration `json:"from"` // since the recording began, in ns
	To   time.Duration `json:"to"`
}

// Recording is the evidence of an experiment on one strategy. All durations are
// since Start, on one clock.
type Recording struct {
	Start  time.Time
	Stock  int     // pieces on the shelf when it began; 0: not known
	Ops    []Op    // in the order of Call
	Events []Event // in the order of At
	Spans  []Span
}

// line is one line of a recording's file: one of these.
type line struct {
	Start *time.Time `json:"start,omitempty"`
	Stock int        `json:"stock,omitempty"`
	Op    *Op        `json:"op,omitempty"`
	Event *Event     `json:"event,omitempty"`
	Span  *Span      `json:"span,omitempty"`
}

// Write writes the recording as JSON lines.
func (r Recording) Write(w io.Writer) error {
	lines := []line{{Start: &r.Start, Stock: r.Stock}}
	for i := range r.Spans {
		lines = append(lines, line{Span: &r.Spans[i]})
	}
	for i := range r.Ops {
		lines = append(lines, line{Op: &r.Ops[i]})
	}
	for i := range r.Events {
		lines = append(lines, line{Event: &r.Events[i]})
	}
	out := json.NewEncoder(w)
	for _, l := range lines {
		if err := out.Encode(l); err != nil {
			return fmt.Errorf("write the recording: %w", err)
		}
	}
	return nil
}

// ReadRecording reads what Write wrote.
func ReadRecording(r io.Reader) (rec Recording, err error) {
	in := json.NewDecoder(bufio.NewReader(r))
	for {
		var l line
		switch err := in.Decode(&l); {
		case errors.Is(err, io.EOF):
			return rec, nil
		case err != nil:
			return rec, fmt.Errorf("read the recording: %w", err)
		}
		switch {
		case l.Start != nil:
			rec.Start, rec.Stock = *l.Start, l.Stock
		case l.Op != nil:
			rec.Ops = append(rec.Ops, *l.Op)
		case l.Event != nil:
			rec.Events = append(rec.Events, *l.Event)
		case l.Span != nil:
			rec.Spans = append(rec.Spans, *l.Span)
		}
	}
}
