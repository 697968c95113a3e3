package lockstest

import (
	"context"
	"errors"
	"os/exec"
	"sync"
	"time"
)

// Crew is the worker processes of a test run. Checks share most of them, as
// tasks share a replica; a check that stops or kills one recruits its own.
type Crew struct {
	// Command prepares a worker process whose locks have that lease where a
	// request names none. The process must call Work.
	Command func(lease time.Duration) *exec.Cmd
	// Long is the lease of most workers, so long that none runs out in a test.
	Long time.Duration

	mu     sync.Mutex
	shared map[place]*Worker
}

// place is a seat in the crew: the nth worker with that lease.
type place struct {
	n     int
	lease time.Duration
}

// Shared returns the nth worker with that lease, which other checks use too.
func (c *Crew) Shared(ctx context.Context, n int, lease time.Duration) (*Worker, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	at := place{n, lease}
	if w := c.shared[at]; w != nil {
		return w, nil
	}
	w, err := c.Recruit(ctx, lease)
	if err != nil {
		return nil, err
	}
	if c.shared == nil {
		c.shared = map[place]*Worker{}
	}
	c.shared[at] = w
	return w, nil
}

// Recruit starts a worker of the caller's own, to be ended with Kill or Close.
func (c *Crew) Recruit(ctx context.Context, lease time.Duration) (*Worker, error) {
	return start(ctx, c.Command(lease))
}

// Close ends the shared workers. The error says which did not end well.
func (c *Crew) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	errs := make(chan error, len(c.shared))
	for _, w := range c.shared {
		go func() { errs <- w.Close() }()
	}
	var all []error
	for range c.shared {
		all = append(all, <-errs)
	}
	c.shared = nil
	return errors.Join(all...)
}
