package api

import (
	"fmt"
	"time"
)

// Step is a step of a request, such as the grant of the lock.
type Step string

// These are the steps of every sale under a lock. A strategy may report further steps.
const (
	Asked    Step = "asked"    // the request asks for the lock
	Queued   Step = "queued"   // the request is in the backend's queue, if it has one
	Part     Step = "part"     // the request has some of several named locks, and asks for the next
	Granted  Step = "granted"  // the request holds the lock
	Read     Step = "read"     // the request has read the count
	Writing  Step = "writing"  // the request has verified the lock, and writes next
	Written  Step = "written"  // the request has written the count
	Released Step = "released" // the request has released the lock
)

// Event says that the request with the id Owner has reached a step.
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

// These are the kinds of messages in the stream of GET /events.
const (
	StreamHello  = "hello"  // the stream is open, and contains every later step
	StreamStep   = "step"   // a StepEvent
	StreamMissed = "missed" // the number of steps that were dropped because the reader was too slow
)

// Key returns the key of the lock for a product.
func Key(product int64) string { return fmt.Sprintf("stock:%d", product) }
