package lockstest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"oversell/lab/stall"
	"oversell/locks"
	"oversell/stock"
)

// unlessStalled repeats a failed check if this process got no CPU for longer than limit. Without
// CPU, a holder cannot renew its lease in time and loses the lock, which is no bug of the lock. A check that met an
// unavailable backend is repeated, too: a program that starts on a busy machine may answer too late at first. So is one
// in which a renewal was late: the process of the worker, or the backend, may have stalled, and not this one.
func unlessStalled(ctx context.Context, limit time.Duration, check func() error) (err error) {
	busy := stall.Repeat(ctx, limit, func() bool {
		err = check()
		for n := 1; n < stall.Attempts && (errors.Is(err, stock.ErrUnavailable) || errors.Is(err, locks.ErrLate)); n++ {
			err = check()
		}
		return err != nil && ctx.Err() == nil
	})
	if busy {
		return fmt.Errorf("%w (this process stalled for more than %v in each of %d attempts; is the machine overloaded?)", err, limit, stall.Attempts)
	}
	return err
}
