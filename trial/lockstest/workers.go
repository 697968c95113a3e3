package lockstest

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"oversell/trial/process"
)

// Workers are the processes of a test run. A check that pauses or kills a worker starts a worker of
// its own for this.
type Workers struct {
	// Command returns the command for a worker, which calls Work and has the given default lease.
	Command func(lease time.Duration) *exec.Cmd
	// Lease is the default lease of the shared workers. It is longer than any check.
	Lease time.Duration

	mu    sync.Mutex
	known map[workerKey]*Worker
}

type workerKey struct {
	n     int
	lease time.Duration
}

func (ws *Workers) shared(ctx context.Context, n int, lease time.Duration) (*Worker, error) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	key := workerKey{n, lease}
	if w := ws.known[key]; w != nil {
		return w, nil
	}
	w, err := ws.start(ctx, lease)
	if err != nil {
		return nil, err
	}
	if ws.known == nil {
		ws.known = map[workerKey]*Worker{}
	}
	ws.known[key] = w
	return w, nil
}

// start starts a worker as the leader of its own process group: a worker may run its lock in a program
// of its own. Close ends only shared workers. The caller must Kill any other worker.
func (ws *Workers) start(ctx context.Context, lease time.Duration) (*Worker, error) {
	cmd := ws.Command(lease)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	p, err := process.Start(cmd, nil)
	if err != nil {
		return nil, fmt.Errorf("lockstest: start a worker: %w", err)
	}
	w := &Worker{Process: p, ended: make(chan struct{})}
	go w.read()
	if err := w.do(ctx, command{Do: doPing}); err != nil {
		w.Kill()
		return nil, err
	}
	return w, nil
}

// Close ends the shared workers, and returns the errors of the workers that failed.
func (ws *Workers) Close() error {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	errs := make(chan error, len(ws.known))
	for _, w := range ws.known {
		go func() { errs <- w.close() }()
	}
	var all []error
	for range ws.known {
		all = append(all, <-errs)
	}
	ws.known = nil
	return errors.Join(all...)
}
