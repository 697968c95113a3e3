package locks

import (
	"context"
	"time"

	"oversell/api"
)

// Tracer is called at every step, in the goroutine that takes it. So it can also pause that
// goroutine, or end it: failpoints work that way.
type Tracer func(ctx context.Context, e api.Event)

type tracerKey struct{}

// WithTracer returns a context whose steps are reported to t.
func WithTracer(ctx context.Context, t Tracer) context.Context {
	return context.WithValue(ctx, tracerKey{}, t)
}

// Trace reports a step to the context's tracer, if there is one.
func Trace(ctx context.Context, step api.Step, key, owner string, fence int64) {
	if t, ok := ctx.Value(tracerKey{}).(Tracer); ok {
		t(ctx, api.Event{Step: step, Key: key, Owner: owner, Fence: fence, At: time.Now()})
	}
}
