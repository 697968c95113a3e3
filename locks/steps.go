package locks

import (
	"context"
	"time"
)

// Step is a point that a strategy passes through.
type Step string

// The steps of every guarded deduction. A strategy may have its own besides.
const (
	Asked    Step = "asked"    // wants the lock
	Queued   Step = "queued"   // has a place in the backend's queue, where there is one
	Granted  Step = "granted"  // has it
	Read     Step = "read"     // has read the count
	Writing  Step = "writing"  // has looked at the hold for the last time, writes next
	Written  Step = "written"  // has written the count
	Released Step = "released" // has given the lock back
)

// Event is one step of one owner.
type Event struct {
	Step  Step      `json:"step"`
	Key   string    `json:"key"`
	Owner string    `json:"owner"`
	Fence int64     `json:"fence,omitempty"`
	At    time.Time `json:"at"`
}

// Tracer sees every step in the goroutine that takes it, so it may also hold
// that goroutine up, or end it: that is how a step is paused or broken at.
type Tracer func(ctx context.Context, e Event)

type tracerKey struct{}

// WithTracer makes t see the steps of everything done under the context.
func WithTracer(ctx context.Context, t Tracer) context.Context {
	return context.WithValue(ctx, tracerKey{}, t)
}

// Trace reports a step. Without a tracer it does nothing.
func Trace(ctx context.Context, step Step, key, owner string, fence int64) {
	if t, ok := ctx.Value(tracerKey{}).(Tracer); ok {
		t(ctx, Event{Step: step, Key: key, Owner: owner, Fence: fence, At: time.Now()})
	}
}
