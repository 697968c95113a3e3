package locks

import (
	"context"
	"time"
)

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
