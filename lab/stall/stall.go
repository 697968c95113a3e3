// Package stall measures for how long processes got no processor. On a machine that is too busy, a holder renews its lease
// too late, which is no fault of the lock.
package stall

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"time"
)

// pulse is the interval at which the clock and the load are read.
const pulse = 10 * time.Millisecond

// Attempts is how often Repeat calls try at most.
const Attempts = 3

// Measure begins a measurement, such as Longest. The function that it returns ends it, and returns the result.
type Measure func(context.Context) func() time.Duration

// Repeat calls try until it does not fail, or neither measured a stall longer than limit nor was late. It reports whether
// the last attempt failed in a longer stall: then the attempts say nothing.
func Repeat(ctx context.Context, measure Measure, limit time.Duration, try func() (failed, late bool)) (busy bool) {
	for range Attempts {
		stalled := measure(ctx)
		failed, late := try()
		busy = stalled() > limit
		if !failed || !busy && !late {
			return false
		}
	}
	return busy
}

// Longest measures the longest time that this process got no processor.
func Longest(ctx context.Context) func() time.Duration { return measure(ctx, 0) }

// Slowest is Longest for other processes, too. This process mostly waits, and so gets a processor at once. Another one, such
// as a program that starts, computes for tens of milliseconds, and shares the processors with all that want to run.
func Slowest(ctx context.Context) func() time.Duration { return measure(ctx, 20*time.Millisecond) }

func measure(ctx context.Context, work time.Duration) func() time.Duration {
	ctx, cancel := context.WithCancel(ctx)
	longest, last := make(chan time.Duration, 1), time.Now()
	go func() {
		ticker := time.NewTicker(pulse)
		defer ticker.Stop()
		var most, slowed time.Duration
		for {
			select {
			case <-ticker.C:
			case <-ctx.Done():
				longest <- max(most, time.Since(last))
				return
			}
			slowed += (work*running()/time.Duration(runtime.NumCPU()) - slowed) / 50 // a burst of a few pulses is no load
			most, last = max(most, slowed, time.Since(last)), time.Now()
		}
	}()
	return func() time.Duration {
		cancel()
		return <-longest
	}
}

// running returns the number of threads of this machine that run or want to run. It is 0 if the system is not Linux.
func running() (n time.Duration) {
	text, _ := os.ReadFile("/proc/loadavg")
	_, _ = fmt.Sscanf(string(text), "%s %s %s %d/", new(string), new(string), new(string), &n)
	return n
}
