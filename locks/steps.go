package locks

import (
	"context"
	"time"

	"oversell/api"
)

// Tracer is called at every step of a request, in the goroutine of the request. So a Tracer can
// also pause or end this goroutine, as failpoints do.
type Tracer func(ctx context.Context, e api.Event)

type tracerKey struct{}

// WithTracer returns a context with a tracer. Trace reports the steps of this context to t.
func WithTracer(ctx context.Context, t Tracer) context.Context {
	return context.WithValue(ctx, tracerKey{}, t)
}

// Trace reports a step to the context's tracer, if there is one.
func Trace(ctx context.Context, step api.Step, key, owner string, fence int64) {
	if t, ok := ctx.Value(tracerKey{}).(Tracer); ok {
		t(ctx, api.Event{Step: step, Key: key, Owner: owner, Fence: fence, At: time.Now()})
	}
}

// AddTracer returns a context that reports its steps to t first, then to the tracer that ctx has.
func AddTracer(ctx context.Context, t Tracer) context.Context {
	next, ok := ctx.Value(tracerKey{}).(Tracer)
	if !ok {
		return WithTracer(ctx, t)
	}
	return WithTracer(ctx, func(ctx context.Context, e api.Event) {
		t(ctx, e)
		next(ctx, e)
	})
}
