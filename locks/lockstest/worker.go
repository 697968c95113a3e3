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

// Worker is another process that locks: the outside of Work.
type Worker struct {
	cmd    *exec.Cmd
	stderr tail

	mu      sync.Mutex
	in      io.WriteCloser
	last    int
	waiting map[int]*call
	ended   chan struct{} // closed when the process has ended
	err     error         // how; after ended
}

// start runs cmd as a worker and waits for its first answer.
//
// A worker is told to end by the end of its input. One that is stopped can't
// hear it; but it leads a process group of its own, and when such a group is
// orphaned, the kernel wakes and ends its stopped members.
func start(ctx context.Context, cmd *exec.Cmd) (*Worker, error) {
	w := &Worker{cmd: cmd, waiting: map[int]*call{}, ended: make(chan struct{})}
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("lockstest: %w", err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("lockstest: %w", err)
	}
	w.in, cmd.Stderr = in, &w.stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("lockstest: start a worker: %w", err)
	}
	go w.read(out)
	if _, err := w.do(ctx, command{Do: doPing}); err != nil {
		w.Kill()
		return nil, err
	}
	return w, nil
}

// read hands out the answers until the process ends.
func (w *Worker) read(out io.Reader) {
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		var r reply
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			_, _ = fmt.Fprintf(&w.stderr, "%s\n", lines.Text()) // no answer: a panic, or the race detector
			continue
		}
		w.mu.Lock()
		c := w.waiting[r.ID]
		w.mu.Unlock()
		if c == nil {
			continue
		}
		if r.Paused {
			c.paused <- struct{}{}
		} else {
			c.answer <- r
		}
	}
	err := w.cmd.Wait()
	if err == nil {
		err = errors.New("it has ended")
	}
	w.err = fmt.Errorf("lockstest: worker %d: %w\n%s", w.cmd.Process.Pid, err, w.stderr.String())
	close(w.ended)
}

// call is a command on its way.
type call struct {
	worker *Worker
	id     int
	answer chan reply
	paused chan struct{}
}

// send gives a command and does not wait for the answer.
func (w *Worker) send(c command) (*call, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.last++
	c.ID = w.last
	sent := &call{worker: w, id: c.ID, answer: make(chan reply, 1), paused: make(chan struct{}, 1)}
	w.waiting[c.ID] = sent
	if err := json.NewEncoder(w.in).Encode(c); err != nil {
		return nil, fmt.Errorf("lockstest: tell worker %d: %w\n%s", w.cmd.Process.Pid, err, w.stderr.String())
	}
	return sent, nil
}

// wait returns the answer. The error says that there was none; what the worker's
// locker answered is in the reply.
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

// untilPaused returns when the deduction stands at its step.
func (c *call) untilPaused(ctx context.Context) error {
	select {
	case <-c.paused:
		return nil
	case r := <-c.answer:
		return fmt.Errorf("it ended before it came to the step: %w", r.err())
	case <-c.worker.ended:
		return c.worker.err
	case <-ctx.Done():
		return fmt.Errorf("it never came to the step: %w", context.Cause(ctx))
	}
}

// cancel ends the context of the command, or of the hold that it acquired.
func (c *call) cancel(ctx context.Context) error { return c.meddle(ctx, doCancel) }

// resume lets a paused deduction go on.
func (c *call) resume(ctx context.Context) error { return c.meddle(ctx, doGo) }

func (c *call) meddle(ctx context.Context, what string) error {
	r, err := c.worker.do(ctx, command{Do: what, Of: c.id})
	if err != nil {
		return err
	}
	return r.err()
}

// do gives a command and waits for its answer.
func (w *Worker) do(ctx context.Context, c command) (reply, error) {
	sent, err := w.send(c)
	if err != nil {
		return reply{}, err
	}
	return sent.wait(ctx)
}

// Stop freezes the process (SIGSTOP), Wake lets it go on (SIGCONT).
func (w *Worker) Stop() error { return w.cmd.Process.Signal(syscall.SIGSTOP) }

// Wake lets a stopped process go on.
func (w *Worker) Wake() error { return w.cmd.Process.Signal(syscall.SIGCONT) }

// Kill ends the process as a crash would (SIGKILL), and returns when it is gone.
func (w *Worker) Kill() {
	_ = w.cmd.Process.Kill()
	<-w.ended
}

// closePatience is how long a worker may take to see the end of its input.
const closePatience = 10 * time.Second

// Close ends the process and returns an error where it did not end well: the
// race detector makes it exit with 66.
func (w *Worker) Close() error {
	_ = w.Wake()
	w.mu.Lock()
	_ = w.in.Close()
	w.mu.Unlock()
	select {
	case <-w.ended:
	case <-time.After(closePatience):
		w.Kill()
		return w.err
	}
	if !w.cmd.ProcessState.Success() {
		return w.err
	}
	return nil
}

// tail keeps the end of what was written to it.
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
