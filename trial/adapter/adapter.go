package adapter

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"reflect"
	"sync"
	"time"

	"oversell/api"
	"oversell/locks"
	"oversell/stock"
)

// ID is the ID of the strategy on a replica with an adapter.
const ID = "adapter"

// restartPause is the shortest time between two starts, so that a program that always fails does
// not keep the machine busy.
const restartPause = time.Second

// Adapter is a Locker whose locks another program provides. It starts a program that has failed
// again with the next request.
type Adapter struct {
	command func() *exec.Cmd
	log     io.Writer
	hello   Hello

	mu      sync.Mutex
	running *program
	started time.Time
	closed  bool
}

// Start starts the program, and returns when it has sent its hello. The command must return a new
// command at each call, without pipes. The log receives the program's standard error.
func Start(ctx context.Context, command func() *exec.Cmd, log io.Writer) (*Adapter, error) {
	p, err := launch(ctx, command(), log)
	if err != nil {
		return nil, err
	}
	return &Adapter{command: command, log: log, hello: p.hello, running: p, started: time.Now()}, nil
}

// Shell returns a function for Start that runs a line of the shell in a folder. The program stays in
// the process group of this process, so a pause or a kill of the group affects it as well.
func Shell(line, dir string, env []string) func() *exec.Cmd {
	return func() *exec.Cmd {
		cmd := exec.Command("/bin/sh", "-c", line) //nolint:gosec,noctx // the user's command; Close ends it
		cmd.Dir, cmd.Env = dir, env
		return cmd
	}
}

// Hello returns the program's hello.
func (l *Adapter) Hello() Hello { return l.hello }

// Card returns the card that the hello describes.
func (l *Adapter) Card() api.Card { return l.hello.Card() }

// Acquire acquires the lock from the program.
func (l *Adapter) Acquire(ctx context.Context, r locks.Request) (*locks.Lock, error) {
	if ctx.Err() != nil {
		return nil, locks.NotAcquired(ctx, r.Key, r.Wait)
	}
	p, err := l.program(ctx)
	if err != nil {
		return nil, unavailable("", err)
	}
	if !l.hello.Capabilities.LeasePerRequest {
		r.Lease = 0
	}
	return p.acquire(ctx, r)
}

// Try acquires a lock and releases it, to see whether the program reaches its servers. It repeats an acquire without
// an answer: the first lock of a program may need seconds, as in Java on a busy machine.
func (l *Adapter) Try(ctx context.Context) error {
	var lock *locks.Lock
	err := errLate
	for i := 1; i <= 2 && errors.Is(err, errLate); i++ {
		name := fmt.Sprintf("try-%d", i)
		lock, err = l.Acquire(ctx, locks.Request{Key: name, Owner: name, Wait: restartPause})
	}
	if err != nil {
		return err
	}
	return lock.Release(ctx)
}

// Clear makes the program delete the key's data in the backend.
func (l *Adapter) Clear(ctx context.Context, key string) error {
	p, err := l.program(ctx)
	if err == nil {
		_, err = p.ask(ctx, Request{Do: doClear, Key: key})
	}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, stock.ErrUnavailable): // it names the backend
		return fmt.Errorf("clear %s: %w", key, err)
	default:
		return unavailable("", fmt.Errorf("clear %s: %w", key, err))
	}
}

// program returns the running program. It starts a new one if the last one has failed.
func (l *Adapter) program(ctx context.Context) (*program, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	err := l.running.failure()
	switch {
	case l.closed:
		return nil, errors.New("the adapter is closed")
	case err == nil:
		return l.running, nil
	case time.Since(l.started) < restartPause:
		return nil, err
	}
	<-l.running.gone
	l.started = time.Now()
	p, err := launch(ctx, l.command(), l.log)
	if err != nil {
		return nil, err
	}
	if !reflect.DeepEqual(p.hello, l.hello) {
		p.fail(errors.New("the program was started again, and its hello differs from the first one"))
		return nil, p.failure()
	}
	l.running = p
	return p, nil
}

// Close ends the program. It is killed if it does not end soon after the end of its input.
func (l *Adapter) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.closed {
		l.closed = true
		l.running.close()
	}
}
