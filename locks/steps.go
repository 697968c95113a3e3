package locks

import (
	"context"
	"time"

	"oversell/api"
	"oversell/stock"
)

// WithTracer returns a context whose steps Trace reports to t: see stock.Watch.
func WithTracer(ctx context.Context, t func(context.Context, api.Event)) context.Context {
	w := stock.WatchOf(ctx)
	w.Step = t
	return stock.WithWatch(ctx, w)
}

// Trace reports a step to the context's tracer, if there is one.
func Trace(ctx context.Context, step api.Step, key, owner string, fence int64) {
	if t := stock.WatchOf(ctx).Step; t != nil {
		t(ctx, api.Event{Step: step, Key: key, Owner: owner, Fence: fence, At: time.Now()})
	}
}
