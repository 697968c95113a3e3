package dash

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"oversell/api"
)

// jobs lets only one job run at a time, because two jobs would distort each other's results.
type jobs struct {
	mu      sync.Mutex
	current *job
}

// job is work that a page has started: a run, experiments, a scenario, or steps of a strategy.
type job struct {
	who   string   // the address from which it was started, such as 127.0.0.1
	what  api.Text // the names of the strategies, such as none, redis
	since time.Time
	stop  context.CancelCauseFunc
	done  chan struct{}
}

// errStopped is the cancellation cause of a job's context if the job was stopped before its end.
var errStopped = errors.New("stopped")

// start fails if another job runs. work must call free in the hub.Send that shows the job's end, so
// that the next job can start as soon as a page shows this end.
func (d *jobs) start(ctx context.Context, who string, what api.Text, work func(ctx context.Context, free func())) error {
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

func (d *jobs) now() *job {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.current
}

func (d *jobs) stop(ctx context.Context) { d.now().end(ctx) }

// end stops the job, and waits until the job has cleaned up or ctx ends. j may be nil.
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

// progress describes the job that a page has started: the running job, or the last job.
type progress struct {
	Begun   bool      `json:"-"`
	Running bool      `json:"running"`
	Stopped bool      `json:"stopped"`
	Who     string    `json:"-"` // the address from which it was started
	What    api.Text  `json:"-"` // the present step
	Error   *api.Text `json:"error,omitempty"`
}

// follow starts a job. It updates p in a call of change when the job begins and when the job ends.
func (d *jobs) follow(ctx context.Context, who string, what, first api.Text, p *progress, change func(func()), work func(context.Context) error) error {
	return d.start(ctx, who, what, func(ctx context.Context, free func()) {
		change(func() { *p = progress{Begun: true, Running: true, Who: who, What: first} })
		err := work(ctx)
		change(func() {
			free()
			p.Running, p.Stopped = false, errors.Is(context.Cause(ctx), errStopped)
			if err != nil && !p.Stopped {
				why := failure(err)
				p.Error = &why
			}
		})
	})
}
