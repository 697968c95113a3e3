package lockstest

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"oversell/api"
	"oversell/locks"
)

// Open returns the strategy with the given ID. A worker calls Open for each command, so Open must
// return the same strategy each time.
type Open func(id string) (locks.Strategy, error)

// Work makes this process a worker. It executes the commands from in and writes the answers to out.
// It returns when in ends, at the latest when the parent process ends. The caller should then exit
// the process, because commands may still run.
func Work(in io.Reader, out io.Writer, open Open) error {
	e := &executor{open: open, out: json.NewEncoder(out), running: map[int]*running{}, held: map[int]*locks.Lock{}}
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		var c command
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			return fmt.Errorf("lockstest: command %q: %w", lines.Text(), err)
		}
		ctx := e.begin(c)
		go func() {
			began := time.Now()
			r, err := e.execute(ctx, c)
			e.end(c.ID)
			r.ID, r.Error, r.Took = c.ID, remote(err), time.Since(began)
			e.answer(r)
		}()
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("lockstest: read commands: %w", err)
	}
	return nil
}

type executor struct {
	open Open

	answering sync.Mutex
	out       *json.Encoder

	mu      sync.Mutex
	running map[int]*running
	held    map[int]*locks.Lock // by the ID of the acquire command
}

type running struct {
	cancel context.CancelCauseFunc
	resume chan struct{}
}

func (e *executor) begin(c command) context.Context {
	ctx, cancel := context.WithCancelCause(context.Background())
	if c.Cancelled {
		cancel(errCancelled)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.running[c.ID] = &running{cancel: cancel, resume: make(chan struct{}, 1)}
	return ctx
}

// end cancels the context of a finished command, unless the command's lock still needs the context.
func (e *executor) end(id int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.held[id] == nil {
		e.running[id].cancel(nil)
	}
}

func (e *executor) answer(r reply) {
	e.answering.Lock()
	defer e.answering.Unlock()
	_ = e.out.Encode(r) // if this fails, the parent process has ended, and in ends as well
}

func (e *executor) execute(ctx context.Context, c command) (reply, error) {
	switch c.Do {
	case doPing:
		return reply{}, nil
	case doCancel:
		e.find(c.Of).cancel(errCancelled)
		return reply{}, nil
	case doResume:
		e.find(c.Of).resume <- struct{}{}
		return reply{}, nil
	case doRelease, doVerify, doLost:
		return e.useLock(ctx, c)
	}
	s, err := e.open(c.Strategy)
	if err != nil {
		return reply{}, err
	}
	switch c.Do {
	case doDeduct:
		return e.deduct(ctx, c, s)
	case doStorm:
		return runStorm(ctx, c, s), nil
	case doClear:
		return reply{}, clearKey(ctx, c, s)
	}
	l, ok := s.(locks.Locker)
	if !ok {
		return reply{}, fmt.Errorf("%s is not a locker", c.Strategy)
	}
	switch c.Do {
	case doAcquire:
		return e.acquire(ctx, c, l)
	case doContend:
		return reply{}, contend(ctx, c, l)
	case doChurn:
		return reply{}, churn(ctx, c, l)
	}
	return reply{}, fmt.Errorf("unknown command %q", c.Do)
}

func (e *executor) find(id int) *running {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.running[id]
}

func (e *executor) acquire(ctx context.Context, c command, l locks.Locker) (reply, error) {
	ctx = e.atStep(ctx, c, func() {})
	h, err := l.Acquire(ctx, c.Request)
	if err != nil {
		return reply{}, err
	}
	e.mu.Lock()
	e.held[c.ID] = h
	e.mu.Unlock()
	return reply{Fence: h.Fence()}, nil
}

func (e *executor) useLock(ctx context.Context, c command) (reply, error) {
	e.mu.Lock()
	h := e.held[c.Of]
	e.mu.Unlock()
	if h == nil {
		return reply{}, fmt.Errorf("%s: command %d did not acquire a lock", c.Do, c.Of)
	}
	switch c.Do {
	case doRelease:
		return reply{}, h.Release(ctx)
	case doVerify:
		return reply{}, h.Verify()
	}
	select {
	case <-h.Context().Done():
		return reply{}, context.Cause(h.Context())
	case <-time.After(c.Wait):
		return reply{}, nil
	}
}

// deduct makes a sale, which stops at the command's step, if any, until the command resume arrives.
func (e *executor) deduct(ctx context.Context, c command, s locks.Strategy) (reply, error) {
	resume := e.find(c.ID).resume
	receipt, err := s.Deduct(e.atStep(ctx, c, func() { <-resume }), c.Order)
	return reply{Receipt: receipt}, err
}

// atStep returns a context with a tracer. When the command reaches its step for the first time, the
// tracer reports this to the test process and calls do.
func (e *executor) atStep(ctx context.Context, c command, do func()) context.Context {
	if c.Step == "" {
		return ctx
	}
	var once sync.Once
	return locks.WithTracer(ctx, func(_ context.Context, event api.Event) {
		if event.Step == c.Step {
			once.Do(func() {
				e.answer(reply{ID: c.ID, Reached: true})
				do()
			})
		}
	})
}

func clearKey(ctx context.Context, c command, s locks.Strategy) error {
	cleaner, ok := s.(locks.Cleaner)
	if !ok {
		return errors.New("the strategy has no Clear")
	}
	return cleaner.Clear(ctx, c.Request.Key)
}
