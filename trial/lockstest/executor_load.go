package lockstest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"time"

	"oversell/locks"
	"oversell/stock"
)

func runStorm(ctx context.Context, c command, s locks.Strategy) reply {
	var mu sync.Mutex
	outcomes := map[string]int{}
	inTasks(c, func(owner string) bool {
		o := c.Order
		o.Owner = owner
		_, err := s.Deduct(ctx, o)
		mu.Lock()
		defer mu.Unlock()
		outcomes[outcomeOf(err)]++
		// End the task after any error except ErrSoldOut. The check has then failed, and each further
		// sale could take a long time.
		return err == nil || errors.Is(err, stock.ErrSoldOut)
	})
	return reply{Outcomes: outcomes}
}

// inTasks runs c.Tasks tasks at the same time. Each task calls do c.Rounds times, with a new owner
// each time, and ends early if do returns false.
func inTasks(c command, do func(owner string) bool) {
	var tasks sync.WaitGroup
	for task := range c.Tasks {
		tasks.Go(func() {
			for round := range c.Rounds {
				if !do(fmt.Sprintf("%s%s-%d-%d", c.Request.Owner, c.Order.Owner, task, round)) {
					return
				}
			}
		})
	}
	tasks.Wait()
}

func contend(ctx context.Context, c command, l locks.Locker) error {
	failed := make(chan error, c.Tasks)
	inTasks(c, func(owner string) bool {
		r := c.Request
		r.Owner = owner
		h, err := l.Acquire(ctx, r)
		if err == nil {
			err = errors.Join(criticalSection(c.Dir, owner, r.Fenced, h.Fence()), h.Release(ctx))
		}
		if err != nil {
			failed <- err
		}
		return err == nil
	})
	select {
	case err := <-failed:
		return err
	default:
		return nil
	}
}

const markerFile, counterFile = "inside", "counter"

// criticalSection increments the counter, and writes the fence beside it. It fails if another task has created the
// marker file, or if the fence is below the one before it.
func criticalSection(dir, owner string, fenced bool, fence int64) error {
	marker, counter := filepath.Join(dir, markerFile), filepath.Join(dir, counterFile)
	if err := createMarker(marker, owner); err != nil {
		return err
	}
	text, err := os.ReadFile(counter) //nolint:gosec // our own folder
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	n, last := 0, int64(0)
	_, _ = fmt.Sscan(string(text), &n, &last)
	time.Sleep(time.Millisecond)
	err = os.WriteFile(counter, fmt.Appendf(nil, "%d %d", n+1, fence), 0o600)
	if fenced && fence < last { // it may be the same if a process passes its lock on
		err = errors.Join(err, contradiction{fmt.Errorf("grant %d has fence %d, and the one before it has %d", n+1, fence, last)})
	}
	return errors.Join(err, os.Remove(marker))
}

// createMarker creates the marker, a symbolic link: it has the name of its owner at once.
func createMarker(marker, owner string) error {
	err := os.Symlink(owner, marker)
	if errors.Is(err, os.ErrExist) {
		other, _ := os.Readlink(marker)
		return contradiction{fmt.Errorf("two holders at once: %s and %s", owner, other)}
	}
	return err
}

// churn cancels each acquisition at a random time within c.Wait, unless it is granted earlier.
func churn(ctx context.Context, c command, l locks.Locker) error {
	// Some libraries notice a cancel only at the end of a blocking command, which can take a second.
	const enough = 5 * time.Second
	random := rand.New(rand.NewPCG(c.Seed, 0)) //nolint:gosec // must be repeatable
	begun := time.Now()
	for i := range c.Rounds {
		if time.Since(begun) > enough {
			return nil
		}
		r := c.Request
		r.Owner, r.Fenced = fmt.Sprintf("%s-%d", r.Owner, i), i%2 == 0
		cancelled, cancel := context.WithCancelCause(ctx)
		timer := time.AfterFunc(time.Duration(random.Int64N(int64(c.Wait))), func() { cancel(errCancelled) })
		h, err := l.Acquire(cancelled, r)
		switch {
		case err == nil:
			err = h.Release(cancelled)
		case errors.Is(err, locks.ErrNotAcquired) && errors.Is(err, errCancelled):
			err = nil
		}
		timer.Stop()
		cancel(nil)
		if err != nil {
			return fmt.Errorf("round %d with seed %d: %w", i, c.Seed, err)
		}
	}
	return nil
}
