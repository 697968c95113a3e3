package lockstest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"oversell/api"
	"oversell/locks"
	"oversell/stock"
)

// deduct is one sale. It stops at the first c.Step until told to go on.
func (w *worker) deduct(ctx context.Context, c command, s locks.Strategy) reply {
	w.mu.Lock()
	resume := w.running[c.ID].resume
	w.mu.Unlock()
	if c.Step != "" {
		var once sync.Once
		ctx = locks.WithTracer(ctx, func(_ context.Context, e api.Event) {
			if e.Step == c.Step {
				once.Do(func() {
					w.answer(reply{ID: c.ID, Paused: true})
					<-resume
				})
			}
		})
	}
	receipt, err := s.Deduct(ctx, c.Order)
	return reply{Receipt: receipt, Fault: faultOf(err), Fence: receipt.Fence}
}

// storm sells c.Rounds times in each of c.Tasks tasks, and counts the outcomes.
// A task ends early when it is neither served nor told that all is sold.
func storm(ctx context.Context, c command, s locks.Strategy) reply {
	t := tally{}
	var tasks sync.WaitGroup
	for task := range c.Tasks {
		tasks.Go(func() {
			for round := range c.Rounds {
				o := c.Order
				o.Owner = fmt.Sprintf("%s-%d-%d", o.Owner, task, round)
				_, err := s.Deduct(ctx, o)
				t.count(outcomeOf(err))
				if err != nil && !errors.Is(err, stock.ErrSoldOut) {
					return // the storm has failed, and each further wait is a long one
				}
			}
		})
	}
	tasks.Wait()
	return reply{Tally: t.counts}
}

// tally counts by name, from several goroutines.
type tally struct {
	mu     sync.Mutex
	counts map[string]int
	err    error // the first
}

func (t *tally) count(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.counts == nil {
		t.counts = map[string]int{}
	}
	t.counts[name]++
}

func (t *tally) fail(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.err == nil {
		t.err = err
	}
}

// contend has every task take the lock again and again, and do under it what
// goes wrong when two are in there: see section.
func contend(ctx context.Context, c command, l locks.Locker) reply {
	t := tally{}
	var tasks sync.WaitGroup
	for task := range c.Tasks {
		tasks.Go(func() {
			for range c.Rounds {
				r := c.Request
				r.Owner = fmt.Sprintf("%s-%d", r.Owner, task)
				h, err := l.Acquire(ctx, r)
				if err != nil {
					t.fail(err)
					return
				}
				if err := section(c.Dir, r.Owner); err != nil {
					t.fail(err)
				}
				if err := h.Release(ctx); err != nil {
					t.fail(err)
				}
				t.count("rounds")
			}
		})
	}
	tasks.Wait()
	return reply{Tally: t.counts, Fault: faultOf(t.err)}
}

const markerFile, counterFile = "inside", "counter"

// section is a critical section that notices company: only one process can make
// the marker, and the counter is read, looked at for a while, and written back.
func section(dir, owner string) error {
	marker, counter := filepath.Join(dir, markerFile), filepath.Join(dir, counterFile)
	if err := mark(marker, owner); err != nil {
		return err
	}
	text, err := os.ReadFile(counter) //nolint:gosec // our own folder
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	n, _ := strconv.Atoi(string(text))
	time.Sleep(time.Millisecond)
	if err := os.WriteFile(counter, []byte(strconv.Itoa(n+1)), 0o600); err != nil {
		return err
	}
	return os.Remove(marker)
}

func mark(marker, owner string) error {
	f, err := os.OpenFile(marker, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600) //nolint:gosec // our own folder
	if errors.Is(err, os.ErrExist) {
		rival, _ := os.ReadFile(marker) //nolint:gosec // our own folder
		return fmt.Errorf("two holders at once: %s, and %s", owner, strings.TrimSpace(string(rival)))
	}
	if err != nil {
		return err
	}
	_, err = f.WriteString(owner)
	return errors.Join(err, f.Close())
}

// churn acquires c.Rounds times, and cancels each at a random moment within
// c.Wait. What was granted all the same is released.
func churn(ctx context.Context, c command, l locks.Locker) reply {
	t := tally{}
	random := rand.New(rand.NewPCG(c.Seed, 0)) //nolint:gosec // must repeat itself
	for i := range c.Rounds {
		r := c.Request
		r.Owner, r.Fenced = fmt.Sprintf("%s-%d", r.Owner, i), i%2 == 0
		cut, cancel := context.WithCancelCause(ctx)
		timer := time.AfterFunc(time.Duration(random.Int64N(int64(c.Wait))), func() { cancel(errCancelled) })
		h, err := l.Acquire(cut, r)
		switch {
		case err == nil:
			t.count("granted")
			err = h.Release(cut)
		case errors.Is(err, locks.ErrNotAcquired) && errors.Is(err, errCancelled):
			t.count("cancelled")
			err = nil
		}
		timer.Stop()
		cancel(nil)
		if err != nil {
			t.fail(fmt.Errorf("round %d of seed %d: %w", i, c.Seed, err))
		}
	}
	return reply{Tally: t.counts, Fault: faultOf(t.err)}
}

// order is a sale of one piece.
func order(product int64, owner string, wait time.Duration) stock.Order {
	return stock.Order{Product: product, Qty: 1, Owner: owner, Wait: wait}
}
