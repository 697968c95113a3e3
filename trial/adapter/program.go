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
	"time"

	"oversell/api"
	"oversell/trial/process"
)

const (
	// helloTimeout limits the time from the start to the hello. A Java program needs seconds.
	helloTimeout = 30 * time.Second
	// writeTimeout limits the write of a request, for a program that does not read.
	writeTimeout = 5 * time.Second
	// endTimeout is the time in which a program must end after the end of its input.
	endTimeout = 2 * time.Second
	// statusTimeout is the time in which the status of a program that closes its pipes must come.
	statusTimeout = time.Second
)

// program is one running program. It has ended for us at its first failure: then no request is
// sent any more, and the process is killed.
type program struct {
	*process.Process
	ready chan struct{} // closed when hello is set
	hello Hello

	ended context.Context // it ends with the first failure
	end   context.CancelCauseFunc
	gone  chan struct{} // closed when the process has ended as well

	writing sync.Mutex

	mu    sync.Mutex
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
	running, err := process.Start(cmd, log)
	if err != nil {
		return nil, fmt.Errorf("start the adapter: %w", err)
	}
	p := &program{
		Process: running, ready: make(chan struct{}), gone: make(chan struct{}), calls: map[int64]*call{}, held: map[int64]*call{},
	}
	p.ended, p.end = context.WithCancelCause(context.Background())
	go p.follow()
	select {
	case <-p.ready:
		return p, nil
	case <-p.ended.Done():
		err = p.failure()
	case <-time.After(helloTimeout):
		err = fmt.Errorf("no hello within %v: does the program flush its standard output after each line?%s", helloTimeout, p.ending())
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	p.fail(err)
	<-p.gone
	return nil, fmt.Errorf("start the adapter: %w", err)
}

// follow reads the lines of the program, and then waits for the end of the process.
func (p *program) follow() {
	p.read()
	<-p.Exited()
	status := "exit status 0"
	if err := p.Err(); err != nil {
		status = err.Error()
	}
	p.fail(fmt.Errorf("the program has ended (%s)%s", status, p.ending()))
	close(p.gone)
}

// read reads the lines of the program until the first one that is wrong.
func (p *program) read() {
	defer func() { _ = p.Out.Close() }()
	lines := bufio.NewScanner(p.Out)
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
	case errors.Is(err, os.ErrDeadlineExceeded): // follow names the status
	case err != nil:
		p.fail(fmt.Errorf("read line %d of the program: %w", n+1, err))
	default:
		select {
		case <-p.Exited(): // follow names the status
		case <-p.ended.Done():
		case <-time.After(statusTimeout):
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
	if err := p.failure(); err != nil {
		return nil, err
	}
	p.mu.Lock()
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
	_ = p.In.SetWriteDeadline(time.Now().Add(writeTimeout))
	if _, err := p.In.Write(append(line, '\n')); err != nil {
		if errors.Is(err, os.ErrDeadlineExceeded) {
			err = fmt.Errorf("the program did not read its standard input for %v", writeTimeout)
		} else {
			select { // follow names the status of a process that has ended
			case <-p.ended.Done():
			case <-time.After(statusTimeout):
			}
		}
		p.fail(err)
		return p.failure()
	}
	return nil
}

// fail ends the program. The first error is the reason for all its later requests.
func (p *program) fail(err error) {
	p.end(err)
	_ = p.In.Close()
	p.Kill()
}

func (p *program) failure() error { return context.Cause(p.ended) }

// close ends the program's input, and kills the program if it does not end by itself.
func (p *program) close() {
	_ = p.Close(endTimeout)
	<-p.gone
}

// ending returns the end of the program's standard error, for a message.
func (p *program) ending() string {
	const most = 1000
	log := p.Log()
	text := strings.TrimSpace(printable(strings.ToValidUTF8(log[max(0, len(log)-most):], "")))
	if text == "" {
		return "; its standard error is empty"
	}
	return "; its standard error ends with:\n  " + strings.ReplaceAll(text, "\n", "\n  ")
}
