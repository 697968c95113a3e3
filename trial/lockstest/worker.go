package lockstest

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"syscall"
	"time"

	"oversell/trial/process"
)

// Worker is a process that runs strategies for the test process. The worker process calls Work.
type Worker struct {
	*process.Process

	mu    sync.Mutex
	calls []*call       // the index is the command's ID
	ended chan struct{} // closed when the process has ended
	err   error         // how the process ended; set before ended is closed
}

func (w *Worker) read() {
	defer func() { _ = w.Out.Close() }()
	noise := "" // the output of a panic or the race detector
	lines := bufio.NewScanner(w.Out)
	for lines.Scan() {
		var r reply
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			noise += lines.Text() + "\n"
			continue
		}
		w.mu.Lock()
		c := w.calls[r.ID]
		w.mu.Unlock()
		if r.Reached {
			c.step <- struct{}{}
		} else {
			c.answer <- r
		}
	}
	<-w.Exited()
	err := w.Err()
	if err == nil {
		err = errors.New("it has ended")
	}
	w.err = fmt.Errorf("lockstest: worker %d: %w\n%s%s", w.PID(), err, noise, w.Log())
	close(w.ended)
}

type call struct {
	worker *Worker
	id     int
	answer chan reply
	step   chan struct{}
}

func (w *Worker) send(c command) (*call, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	c.ID = len(w.calls)
	sent := &call{worker: w, id: c.ID, answer: make(chan reply, 1), step: make(chan struct{}, 1)}
	w.calls = append(w.calls, sent)
	if err := json.NewEncoder(w.In).Encode(c); err != nil {
		return nil, fmt.Errorf("lockstest: send a command to worker %d: %w\n%s", w.PID(), err, w.Log())
	}
	return sent, nil
}

// wait returns an error only if no answer came. The answer may contain the strategy's error.
func (c *call) wait(ctx context.Context) (reply, error) {
	select {
	case r := <-c.answer:
		return r, nil
	case <-c.worker.ended:
		return reply{}, c.worker.err
	case <-ctx.Done():
		return reply{}, fmt.Errorf("lockstest: no answer from worker %d: %w", c.worker.PID(), context.Cause(ctx))
	}
}

func (c *call) reached(ctx context.Context) error {
	select {
	case <-c.step:
		return nil
	case r := <-c.answer:
		return fmt.Errorf("the command ended before the step: %w", orNone(r.err()))
	case <-c.worker.ended:
		return c.worker.err
	case <-ctx.Done():
		return fmt.Errorf("the command did not reach the step at which it pauses: %w", context.Cause(ctx))
	}
}

// cancel ends the context of the command, or of the lock that it acquired.
func (c *call) cancel(ctx context.Context) error {
	return c.worker.do(ctx, command{Do: doCancel, Of: c.id})
}

func (c *call) resume(ctx context.Context) error {
	return c.worker.do(ctx, command{Do: doResume, Of: c.id})
}

func (w *Worker) do(ctx context.Context, c command) error {
	sent, err := w.send(c)
	if err != nil {
		return err
	}
	r, err := sent.wait(ctx)
	if err != nil {
		return err
	}
	return r.err()
}

// Pause stops the process and its children (SIGSTOP).
func (w *Worker) Pause() error { return w.Signal(syscall.SIGSTOP) }

// Resume continues a paused process and its children (SIGCONT).
func (w *Worker) Resume() error { return w.Signal(syscall.SIGCONT) }

// Kill ends the process and its children as a crash would (SIGKILL), and returns when it has ended.
func (w *Worker) Kill() {
	w.Process.Kill()
	<-w.ended
}

// closeTimeout is how long close waits for a worker to end after the end of its input.
const closeTimeout = 10 * time.Second

// close ends the worker. It returns an error if the process failed, for example with a data race.
func (w *Worker) close() error {
	_ = w.Resume()
	if w.Close(closeTimeout) == nil {
		return nil
	}
	<-w.ended
	return w.err
}
