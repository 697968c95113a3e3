// Package stall measures for how long this process got no processor. On a machine that is too busy, a holder renews its
// lease too late, which is no fault of the lock.
package stall

import (
	"context"
	"time"
)

// pulse is the interval at which the clock is read.
const pulse = 10 * time.Millisecond

// Attempts is how often Repeat calls try at most.
const Attempts = 3

// Repeat calls try until it does not fail, or this process got no processor for at most limit meanwhile. It reports whether
// each attempt failed in a longer stall: then they say nothing.
func Repeat(ctx context.Context, limit time.Duration, try func() (failed bool)) (busy bool) {
	for range Attempts {
		longest := Longest(ctx)
		if failed := try(); longest() <= limit || !failed {
			return false
		}
	}
	return true
}

// Longest begins to measure. The function that it returns ends the measurement and returns the longest time without a
// processor.
func Longest(ctx context.Context) func() time.Duration {
	ctx, cancel := context.WithCancel(ctx)
	longest, last := make(chan time.Duration, 1), time.Now()
	go func() {
		ticker := time.NewTicker(pulse)
		defer ticker.Stop()
		var most time.Duration
		for {
			select {
			case <-ticker.C:
			case <-ctx.Done():
				longest <- max(most, time.Since(last))
				return
			}
			most, last = max(most, time.Since(last)), time.Now()
		}
	}()
	return func() time.Duration {
		cancel()
		return <-longest
	}
}
