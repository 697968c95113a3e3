package lockstest

import (
	"context"
	"fmt"
	"time"
)

const (
	// attempts bounds how often a check is run whose machine stood still.
	attempts = 3
	// pulse is how often a check looks at the clock to see that.
	pulse = 10 * time.Millisecond
)

// unlessStalled runs a check. It runs a failed one again if this process was given no
// processor for longer than limit in the meantime: a holder that cannot renew in time
// loses its lease, and neither the lock nor its card is wrong.
func unlessStalled(ctx context.Context, limit time.Duration, check func() error) error {
	for i := 1; ; i++ {
		stalled := longestStall(ctx)
		err := check()
		longest := stalled()
		if err == nil || longest <= limit || ctx.Err() != nil {
			return err
		}
		if i == attempts {
			return fmt.Errorf("%w (this machine stood still for %v, and in each of %d attempts for more than %v)",
				err, longest.Round(time.Millisecond), attempts, limit)
		}
	}
}

// longestStall watches the clock until the function that it returns is called, which
// returns the longest time that this process did not run.
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
