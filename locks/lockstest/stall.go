package lockstest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"oversell/stock"
)

const (
	// attempts is how often a check runs at most, if the process stalls in each run.
	attempts = 3
	// pulse is the interval at which the clock is sampled to detect a stalled process.
	pulse = 10 * time.Millisecond
)

// unlessStalled repeats a failed check if this process got no CPU for longer than limit. Without
// CPU, a holder cannot renew its lease in time and loses the lock, which is no bug of the lock. A check that met an
// unavailable backend is repeated, too: a program that starts on a busy machine may answer too late at first.
func unlessStalled(ctx context.Context, limit time.Duration, check func() error) error {
	for i := 1; ; i++ {
		stalled := longestStall(ctx)
		err := check()
		longest := stalled()
		if err == nil || ctx.Err() != nil || longest <= limit && !errors.Is(err, stock.ErrUnavailable) {
			return err
		}
		if i == attempts && longest <= limit {
			return err
		}
		if i == attempts {
			return fmt.Errorf("%w (this process stalled for %v in the last of %d attempts, and for more than %v in each; is the machine overloaded?)",
				err, longest.Round(time.Millisecond), attempts, limit)
		}
	}
}

// longestStall begins to measure how long this process gets no CPU. The function that it returns
// ends the measurement and returns the longest time without CPU.
func longestStall(ctx context.Context) func() time.Duration {
	ctx, cancel := context.WithCancel(ctx)
	longest := make(chan time.Duration, 1)
	go func() {
		ticker := time.NewTicker(pulse)
		defer ticker.Stop()
		var most time.Duration
		for last := time.Now(); ; {
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
