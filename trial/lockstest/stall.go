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

// ErrBusy means that a check is inconclusive: it failed in each attempt, and the machine was too busy.
var ErrBusy = errors.New("inconclusive, as the machine was too busy in each attempt")

// errContradiction marks a failure that no stall explains, such as a lost update.
var errContradiction = errors.New("contradiction")

type contradiction struct{ error }

func (contradiction) Is(target error) bool { return target == errContradiction }

// unlessStalled repeats a failed check if a process may have got no CPU for longer than limit. Without CPU, a holder cannot
// renew its lease in time and loses the lock, which is no bug of the lock. A check that met an unavailable backend is
// repeated, too: a program that starts on a busy machine may answer too late at first. So is one in which a renewal was
// late: the process of the worker, or the backend, may have stalled. An error of the backend in each attempt is no stall.
func unlessStalled(ctx context.Context, limit time.Duration, check func() error) (err error) {
	unavailable := true // in each attempt
	busy := stall.Repeat(ctx, stall.Slowest, limit, func() (failed, late bool) {
		err = check()
		unavailable = unavailable && errors.Is(err, stock.ErrUnavailable)
		failed = err != nil && ctx.Err() == nil && !errors.Is(err, errContradiction)
		return failed, errors.Is(err, stock.ErrUnavailable) || errors.Is(err, locks.ErrLate)
	})
	if busy && !unavailable {
		return fmt.Errorf("%w: %w", ErrBusy, err)
	}
	return err
}
