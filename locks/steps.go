package locks

import (
	"context"
	"time"
)

// Step is a point in the course of a deduction.
type Step string

// The steps of every guarded deduction. A strategy may have its own besides.
const (
	Asked    Step = "asked"    // asks for the lock
	Queued   Step = "queued"   // is in the backend's queue, if there is one
	Granted  Step = "granted"  // holds the lock
	Read     Step = "read"     // has read the count
	Writing  Step = "writing"  // has verified the lock for the last time, writes next
	Written  Step = "written"  // has written the count
	Released Step = "released" // has released the lock
)

// Event is one step of one owner.
type Event struct {
	Step  Step      `json:"step"`
	Key   string    `json:"key"`
	Owner string    `json:"owner"`
	Fence int64     `json:"fence,omitempty"`
	At    time.Time `json:"at"`
}

// Tracer is called at every step, in the goroutine that takes it. So it can also pause that
// goroutine, or end it: failpoints work that way.
type Tracer func(ctx context.Context, e Event)

type tracerKey struct{}

// WithTracer returns a context whose steps are reported to t.
func WithTracer(ctx context.Context, t Tracer) context.Context {
	return context.WithValue(ctx, tracerKey{}, t)
}

// Trace reports a step to the context's tracer, if there is one.
func Trace(ctx context.Context, step Step, key, owner string, fence int64) {
	if t, ok := ctx.Value(tracerKey{}).(Tracer); ok {
		t(ctx, Event{Step: step, Key: key, Owner: owner, Fence: fence, At: time.Now()})
	}
}
