package locks

import (
	"context"
	"math/rand/v2"
	"time"
)

type jitterKey struct{}

// WithJitter returns a context whose random pauses come from draw, for a schedule that must be
// repeatable. draw returns a duration from 0 to below its argument.
func WithJitter(ctx context.Context, draw func(below time.Duration) time.Duration) context.Context {
	return context.WithValue(ctx, jitterKey{}, draw)
}

// Jitter returns a random pause from 0 to below the given one, so that requests which collided do
// not collide again.
func Jitter(ctx context.Context, below time.Duration) time.Duration {
	if draw, ok := ctx.Value(jitterKey{}).(func(time.Duration) time.Duration); ok {
		return draw(below)
	}
	return rand.N(below) //nolint:gosec // no secret
}
