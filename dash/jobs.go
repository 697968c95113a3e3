package dash

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"
)

// jobs runs one job at a time in the lab: two loads would distort each other's figures.
type jobs struct {
	mu      sync.Mutex
	current *job
}

// job is a run, an experiment or a round.
type job struct {
	who   string // the address that started it, such as 127.0.0.1
	what  Text   // such as none, redis
	since time.Time
	stop  context.CancelCauseFunc
	done  chan struct{}
}

// errStopped is the cause with which a visitor's stop cancels the context of a job.
var errStopped = errors.New("stopped")

// start runs work in the background. It returns an error if another job runs. Work calls free
// in the same call of hub.send that announces its end: a page that shows the end can start the
// next job at once.
func (d *jobs) start(ctx context.Context, who string, what Text, work func(ctx context.Context, free func())) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if j := d.current; j != nil {
		return reject(http.StatusConflict,
			"%[1]s has been running %[2]s since %[4]s. Only one job can run at a time: wait until it ends, or stop it.",
			"%[1]s 从 %[4]s 起正在运行 %[3]s。一次只能运行一个：请等它结束，或停止它。",
			j.who, j.what.EN, j.what.ZH, j.since.Format(time.TimeOnly))
	}
	j := &job{who: who, what: what, since: time.Now(), done: make(chan struct{})}
	ctx, j.stop = context.WithCancelCause(context.WithoutCancel(ctx))
	d.current = j
	go func() {
		defer close(j.done)
		defer j.stop(nil)
		free := sync.OnceFunc(func() {
			d.mu.Lock()
			defer d.mu.Unlock()
			d.current = nil
		})
		defer free()
		work(ctx, free)
	}()
	return nil
}

// now returns the job that runs, or nil.
func (d *jobs) now() *job {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.current
}

func (d *jobs) stop(ctx context.Context) { d.now().end(ctx) }

// end stops the job, unless it is nil, and waits until it has cleaned up or ctx ends.
func (j *job) end(ctx context.Context) {
	if j == nil {
		return
	}
	j.stop(errStopped)
	select {
	case <-j.done:
	case <-ctx.Done():
	}
}

// progress describes the job that a page started last.
type progress struct {
	Begun, Running, Stopped bool

	Who   string // the address that started it
	What  Text   // the present step
	Error *Text
}

// follow starts a job and updates p, in calls of change, when the job begins and ends.
func (d *jobs) follow(ctx context.Context, who string, what, first Text, p *progress, change func(func()), work func(context.Context) error) error {
	return d.start(ctx, who, what, func(ctx context.Context, free func()) {
		change(func() { *p = progress{Begun: true, Running: true, Who: who, What: first} })
		err := work(ctx)
		change(func() {
			free()
			p.Running, p.Stopped = false, errors.Is(context.Cause(ctx), errStopped)
			if err != nil && !p.Stopped {
				why := verbatim(err.Error())
				p.Error = &why
			}
		})
	})
}
