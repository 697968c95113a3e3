package adapter

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"oversell/api"
)

const (
	// helloTimeout limits the time from the start to the hello. A Java program needs seconds.
	helloTimeout = 30 * time.Second
	// writeTimeout limits the write of a request, for a program that does not read.
	writeTimeout = 5 * time.Second
	// endTimeout is the time in which a program must end after the end of its input.
	endTimeout = 2 * time.Second
	// drainTimeout is the time for the last lines of a process that has ended. A child of the process
	// may keep the pipe open for ever.
	drainTimeout = 300 * time.Millisecond
)

// program is one running program. It has ended for us at its first failure: then no request is
// sent any more, and the process is killed.
type program struct {
	cmd   *exec.Cmd
	in    *os.File
	out   *os.File
	log   tail
	ready chan struct{} // closed when hello is set
	hello Hello

	// These channels are closed when the process has ended, when its last line was read, when err is
	// set, and when all of this is done.
	exited, drained, ended, gone chan struct{}

	writing sync.Mutex

	mu    sync.Mutex
	err   error
	last  int64           // the ID of the newest request
	calls map[int64]*call // requests without a final answer
	held  map[int64]*call // acquires that were granted, and not released
}

// call is a request that waits for its answer, or an acquire that holds the lock.
type call struct {
	Request
	answers chan Answer
	lost    chan string // why the lock was lost
}

// launch starts the program, and returns when the program has sent its hello.
func launch(ctx context.Context, cmd *exec.Cmd, log io.Writer) (*program, error) {
	p := &program{
		cmd: cmd, log: tail{to: log}, ready: make(chan struct{}),
		exited: make(chan struct{}), drained: make(chan struct{}), ended: make(chan struct{}), gone: make(chan struct{}),
		calls: map[int64]*call{}, held: map[int64]*call{},
	}
	if err := p.start(); err != nil {
		return nil, fmt.Errorf("start the adapter: %w", err)
	}
	go p.wait()
	go p.read()
	timeout := time.NewTimer(helloTimeout)
	defer timeout.Stop()
	var err error
	select {
	case <-p.ready:
		return p, nil
	case <-p.ended:
		err = p.failure()
	case <-timeout.C:
		err = fmt.Errorf("no hello within %v%s", helloTimeout, p.log.ending())
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	p.fail(err)
	<-p.gone
	return nil, fmt.Errorf("start the adapter: %w", err)
}

// start connects the pipes itself: those of exec have no deadlines, and end only with all children.
func (p *program) start() error {
	childIn, in, err := os.Pipe()
	if err != nil {
		return err
	}
	defer func() { _ = childIn.Close() }()
	out, childOut, err := os.Pipe()
	if err != nil {
		_ = in.Close()
		return err
	}
	defer func() { _ = childOut.Close() }()
	p.in, p.out = in, out
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr, p.cmd.WaitDelay = childIn, childOut, &p.log, drainTimeout
	if err := p.cmd.Start(); err != nil {
		_, _ = in.Close(), out.Close()
		return err
	}
	return nil
}

// wait waits until the process has ended, and then ends the reader.
func (p *program) wait() {
	err := p.cmd.Wait()
	if errors.Is(err, exec.ErrWaitDelay) { // a child of the process has its standard error
		err = nil
	}
	close(p.exited)
	p.kill() // the children of the process
	_ = p.out.SetReadDeadline(time.Now().Add(drainTimeout))
	status := "exit status 0"
	if err != nil {
		status = err.Error()
	}
	<-p.drained
	p.fail(fmt.Errorf("the program has ended (%s)%s", status, p.log.ending()))
	close(p.gone)
}

// read reads the lines of the program until the first one that is wrong.
func (p *program) read() {
	defer close(p.drained)
	defer func() { _ = p.out.Close() }()
	lines := bufio.NewScanner(p.out)
	lines.Buffer(nil, maxLine)
	n := 0
	for lines.Scan() {
		n++
		if err := p.take(n, lines.Bytes()); err != nil {
			p.fail(fmt.Errorf("line %d of the program: %w", n, err))
			return
		}
	}
	switch err := lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		p.fail(fmt.Errorf("line %d of the program is longer than %d bytes", n+1, maxLine))
	case errors.Is(err, os.ErrDeadlineExceeded): // wait names the status
	case err != nil:
		p.fail(fmt.Errorf("read line %d of the program: %w", n+1, err))
	default:
		select {
		case <-p.exited: // wait names the status
		case <-p.ended:
		case <-time.After(3 * drainTimeout):
			p.fail(errors.New("the program has closed its standard output, but it still runs"))
		}
	}
}

func (p *program) take(n int, line []byte) (err error) {
	if n == 1 {
		if p.hello, err = decodeHello(line); err == nil {
			close(p.ready)
		}
		return err
	}
	var a Answer
	if err := decode(line, &a); err != nil {
		return err
	}
	a.Why, a.Backend, a.Step = printable(a.Why), printable(a.Backend), api.Step(printable(string(a.Step)))
	return p.dispatch(a)
}

func (p *program) dispatch(a Answer) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.calls[a.ID]
	switch {
	case a.ID <= 0 || a.ID > p.last:
		return fmt.Errorf("the answer %q has the id %d, and no request has this id", a.Answer, a.ID)
	case a.Answer == lost:
		if h := p.held[a.ID]; h != nil { // otherwise it crossed the release
			select {
			case h.lost <- a.Why:
			default:
			}
		}
		return nil
	case c == nil:
		return fmt.Errorf("the answer %q to request %d, which was answered before", a.Answer, a.ID)
	}
	if err := a.check(c.Do); err != nil {
		return err
	}
	select {
	case c.answers <- a:
	default:
		return fmt.Errorf("too many answers to %s %d", c.Do, a.ID)
	}
	if a.final() {
		delete(p.calls, a.ID)
	}
	switch {
	case a.Answer == granted:
		p.held[a.ID] = c
	case c.Do == doRelease && a.final():
		delete(p.held, c.Of)
	}
	return nil
}

// send sends a request that has an answer.
func (p *program) send(r Request) (*call, error) {
	p.mu.Lock()
	if p.err != nil {
		defer p.mu.Unlock()
		return nil, p.err
	}
	p.last++
	r.ID = p.last
	const most = 8 // answers that nobody has read yet: a request has queued, a step and its result
	c := &call{Request: r, answers: make(chan Answer, most), lost: make(chan string, 1)}
	p.calls[r.ID] = c
	p.mu.Unlock()
	return c, p.write(r)
}

func (p *program) write(r Request) error {
	line, err := json.Marshal(r)
	if err != nil {
		return err
	}
	p.writing.Lock()
	defer p.writing.Unlock()
	_ = p.in.SetWriteDeadline(time.Now().Add(writeTimeout))
	if _, err := p.in.Write(append(line, '\n')); err != nil {
		if errors.Is(err, os.ErrDeadlineExceeded) {
			err = fmt.Errorf("the program did not read its standard input for %v", writeTimeout)
		} else {
			select { // wait names the status of a process that has ended
			case <-p.ended:
			case <-time.After(3 * drainTimeout):
			}
		}
		p.fail(err)
		return p.failure()
	}
	return nil
}

// fail ends the program. The first error is the reason for all its later requests.
func (p *program) fail(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err == nil {
		p.err = err
		close(p.ended)
		_ = p.in.Close()
		p.kill()
	}
}

func (p *program) failure() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}

// kill kills the process, and its children if the process leads a group of its own.
func (p *program) kill() {
	if attr := p.cmd.SysProcAttr; attr != nil && attr.Setpgid {
		_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
		return
	}
	_ = p.cmd.Process.Kill()
}

var errClosed = errors.New("the adapter is closed")

// close ends the program's input, and kills the program if it does not end by itself.
func (p *program) close() {
	_ = p.in.Close()
	select {
	case <-p.gone:
	case <-time.After(endTimeout):
		p.fail(errClosed)
		<-p.gone
	}
}

// tail passes the log of a program on, and keeps its end for error messages.
type tail struct {
	to   io.Writer
	mu   sync.Mutex
	text []byte
}

func (t *tail) Write(text []byte) (int, error) {
	const most = 1000
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, text...)
	t.text = t.text[max(0, len(t.text)-most):]
	if t.to != nil {
		_, _ = t.to.Write(text) // an error must not end the program
	}
	return len(text), nil
}

func (t *tail) ending() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	text := strings.TrimSpace(printable(strings.ToValidUTF8(string(t.text), "")))
	if text == "" {
		return "; its standard error is empty"
	}
	return "; its standard error ends with:\n  " + strings.ReplaceAll(text, "\n", "\n  ")
}
