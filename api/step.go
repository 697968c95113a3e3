package api

import (
	"fmt"
	"time"
)

// Step is a point that a request passes through on its way to a sale.
type Step string

// The steps of every guarded sale. A strategy may report steps of its own besides.
const (
	Asked    Step = "asked"    // the request needs the lock
	Queued   Step = "queued"   // it has a place in the backend's queue, where there is one
	Granted  Step = "granted"  // it holds the lock
	Read     Step = "read"     // it has read the count
	Writing  Step = "writing"  // it has verified the lock for the last time, and writes next
	Written  Step = "written"  // it has written the count
	Released Step = "released" // it has released the lock
)

// Event is one step of one owner.
type Event struct {
	Step  Step      `json:"step"`
	Key   string    `json:"key"`
	Owner string    `json:"owner"`
	Fence int64     `json:"fence,omitempty"`
	At    time.Time `json:"at"`
}

// StepEvent is an Event as GET /events sends it.
type StepEvent struct {
	Replica  string `json:"replica"`
	Strategy string `json:"strategy"`
	Event
}

// The kinds of messages in the stream of GET /events.
const (
	StreamHello  = "hello"  // the stream is open: every later step is in it
	StreamStep   = "step"   // a StepEvent
	StreamMissed = "missed" // the reader was too slow, and steps were dropped
)

// Key is the name that a sale of the product locks.
func Key(product int64) string { return fmt.Sprintf("stock:%d", product) }
