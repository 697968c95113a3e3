package lockstest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"oversell/lab/stall"
	"oversell/stock"
)

// attempts is how often a check runs at most, if the process stalls in each run.
const attempts = 3

// unlessStalled repeats a failed check if this process got no CPU for longer than limit. Without
// CPU, a holder cannot renew its lease in time and loses the lock, which is no bug of the lock. A check that met an
// unavailable backend is repeated, too: a program that starts on a busy machine may answer too late at first.
func unlessStalled(ctx context.Context, limit time.Duration, check func() error) error {
	for i := 1; ; i++ {
		stalled := stall.Longest(ctx)
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
