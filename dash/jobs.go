package dash

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// jobs lets one job at a time run in the lab: two loads would measure each other.
type jobs struct {
	mu   sync.Mutex
	busy *job
}

// job is what runs. Its context ends when somebody stops it.
type job struct {
	Who   string    // who started it, such as 127.0.0.1
	What  Text      // such as none, redis
	Since time.Time //
	ctx   context.Context
	stop  context.CancelCauseFunc
	done  chan struct{}
}

// busyError says who runs what.
type busyError struct{ job *job }

func (e busyError) Error() string {
	return fmt.Sprintf("%s runs %s since %s", e.job.Who, e.job.What.EN, e.job.Since.Format(time.TimeOnly))
}

var errStopped = errors.New("stopped")

// take begins a job, and runs work in the background. A busyError: another one runs.
//
// Work calls free in the hub's turn that announces its end: a page that shows the end may
// start the next job at once, and must not be refused because of the job that has ended.
func (d *jobs) take(ctx context.Context, who string, what Text, work func(ctx context.Context, free func())) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.busy != nil {
		return busyError{d.busy}
	}
	j := &job{Who: who, What: what, Since: time.Now(), done: make(chan struct{})}
	j.ctx, j.stop = context.WithCancelCause(context.WithoutCancel(ctx))
	d.busy = j
	go func() {
		defer close(j.done)
		defer j.stop(nil)
		free := sync.OnceFunc(func() {
			d.mu.Lock()
			defer d.mu.Unlock()
			d.busy = nil
		})
		defer free()
		work(j.ctx, free)
	}()
	return nil
}

// now is the job that runs, nil when none does.
func (d *jobs) now() *job {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.busy
}

// stop ends the job that runs and waits until it has cleaned up, or ctx ends.
func (d *jobs) stop(ctx context.Context) {
	j := d.now()
	if j == nil {
		return
	}
	j.stop(errStopped)
	select {
	case <-j.done:
	case <-ctx.Done():
	}
}
