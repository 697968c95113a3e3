package lockstest

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

// Worker is a process that runs strategies for the test process. The worker process calls Work.
type Worker struct {
	cmd    *exec.Cmd
	stderr tail

	mu    sync.Mutex
	in    io.WriteCloser
	calls []*call       // the index is the command's ID
	ended chan struct{} // closed when the process has ended
	err   error         // how the process ended; set before ended is closed
}

// start starts a worker as the leader of its own process group. If the test process dies, a paused
// worker cannot notice the end of its input. But its process group is then orphaned, and the kernel
// resumes and ends the paused processes of such a group.
func start(ctx context.Context, cmd *exec.Cmd) (*Worker, error) {
	w := &Worker{cmd: cmd, ended: make(chan struct{})}
	cmd.Stderr, cmd.SysProcAttr = &w.stderr, &syscall.SysProcAttr{Setpgid: true}
	cmd.WaitDelay = time.Second // a child of the worker may keep its standard error open
	in, inErr := cmd.StdinPipe()
	out, outErr := cmd.StdoutPipe()
	w.in = in
	if err := errors.Join(inErr, outErr); err != nil {
		return nil, fmt.Errorf("lockstest: pipes of a worker: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("lockstest: start a worker: %w", err)
	}
	go w.read(out)
	if err := w.do(ctx, command{Do: doPing}); err != nil {
		w.Kill()
		return nil, err
	}
	return w, nil
}

func (w *Worker) read(out io.Reader) {
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		var r reply
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			_, _ = fmt.Fprintf(&w.stderr, "%s\n", lines.Text()) // the output of a panic or the race detector
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
	err := w.cmd.Wait()
	_ = w.signal(syscall.SIGKILL) // the children of the worker
	if err == nil {
		err = errors.New("it has ended")
	}
	w.err = fmt.Errorf("lockstest: worker %d: %w\n%s", w.cmd.Process.Pid, err, w.stderr.String())
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
	if err := json.NewEncoder(w.in).Encode(c); err != nil {
		return nil, fmt.Errorf("lockstest: send a command to worker %d: %w\n%s", w.cmd.Process.Pid, err, w.stderr.String())
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
		return reply{}, fmt.Errorf("lockstest: no answer from worker %d: %w", c.worker.cmd.Process.Pid, context.Cause(ctx))
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
func (w *Worker) Pause() error { return w.signal(syscall.SIGSTOP) }

// Resume continues a paused process and its children (SIGCONT).
func (w *Worker) Resume() error { return w.signal(syscall.SIGCONT) }

// Kill ends the process and its children as a crash would (SIGKILL), and returns when it has ended.
func (w *Worker) Kill() {
	_ = w.signal(syscall.SIGKILL)
	<-w.ended
}

// signal reaches the whole process group: a worker may run its lock in a program of its own.
func (w *Worker) signal(s syscall.Signal) error { return syscall.Kill(-w.cmd.Process.Pid, s) }

// closeTimeout is how long close waits for a worker to end after the end of its input.
const closeTimeout = 10 * time.Second

// close ends the worker. It returns an error if the process failed, for example with a data race.
func (w *Worker) close() error {
	_ = w.Resume()
	w.mu.Lock()
	_ = w.in.Close()
	w.mu.Unlock()
	select {
	case <-w.ended:
	case <-time.After(closeTimeout):
		w.Kill()
		return w.err
	}
	if !w.cmd.ProcessState.Success() {
		return w.err
	}
	return nil
}

type tail struct {
	mu   sync.Mutex
	text []byte
}

const tailBytes = 8192

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p...)
	t.text = t.text[max(0, len(t.text)-tailBytes):]
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.text)
}
