package rig

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// readyTimeout bounds a start. It is far longer than a slow machine needs, and only
	// there so that a server that hangs gives an error.
	readyTimeout = 60 * time.Second
	// stopTimeout bounds a graceful stop. A replica finishes its running requests.
	stopTimeout = 20 * time.Second
	// probeTimeout bounds one probe, probePause is the time between two.
	probeTimeout = time.Second
	probePause   = 10 * time.Millisecond
)

// Server is one server of a rig. It keeps its port, its folder and, MySQL and
// ZooKeeper, its data from one start to the next. Its methods may be called from
// several goroutines; Start, Stop and Kill wait for each other.
type Server struct {
	name string
	addr string // host:port
	rig  *Rig

	prepare func(ctx context.Context) error // once, before the first start; may be nil
	command func() *exec.Cmd                // a fresh command for each start
	probe   func(ctx context.Context) error // nil error: it serves
	ready   func(ctx context.Context) error // waits until it is of use; nil: as soon as it serves
	clock   string                          // the file with its clock's offset; empty: the machine's clock

	changing sync.Mutex // held by Start, Stop and Kill
	proc     atomic.Pointer[process]
}

// Name is the server's name, such as redis-1.
func (s *Server) Name() string { return s.name }

// Addr is where it listens, as host:port.
func (s *Server) Addr() string { return s.addr }

// Log is the path of the file with its output.
func (s *Server) Log() string { return filepath.Join(s.rig.dir, s.name+".log") }

// PID is its process id, which is also that of its process group; 0 when it does not run.
func (s *Server) PID() int {
	if p := s.running(); p != nil {
		return p.pid()
	}
	return 0
}

// Start starts a server that was stopped, was killed or died, on the same port, and
// returns when it serves. When it does not within a minute, or ctx ends, it is killed.
func (s *Server) Start(ctx context.Context) error {
	s.changing.Lock()
	defer s.changing.Unlock()
	if s.running() != nil {
		return fmt.Errorf("rig: start %s: it runs already", s.name)
	}
	if s.rig.ctx.Err() != nil {
		return fmt.Errorf("rig: start %s: %w", s.name, errClosed)
	}
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	defer context.AfterFunc(s.rig.ctx, cancel)()

	began := time.Now()
	if s.prepare != nil {
		if err := s.prepare(ctx); err != nil {
			return err
		}
		s.prepare = nil
	}
	p, err := s.rig.spawn(s.command(), s.Log())
	if err != nil {
		return err
	}
	s.proc.Store(p)
	go s.report(p)
	if err := s.await(ctx, p); err != nil {
		return err
	}
	p.ready.Store(true)
	if p.ended() { // in between, when report did not know yet that it was ready
		return fmt.Errorf("rig: %s ended at its start (%s), its log ends with:\n%s", s.name, p.status(), p.tail())
	}
	s.rig.logf("%-10s ready on %s after %.2f s", s.name, s.addr, time.Since(began).Seconds())
	return nil
}

// await returns when the process answers its probe, or has died, or ctx ends.
func (s *Server) await(ctx context.Context, p *process) error {
	for {
		once, cancel := context.WithTimeout(ctx, probeTimeout)
		err := s.probe(once)
		cancel()
		if p.ended() {
			// Checked even if the probe went well: another program may have taken the port.
			return fmt.Errorf("rig: %s ended at its start (%s), its log ends with:\n%s", s.name, p.status(), p.tail())
		}
		if err == nil {
			return nil
		}
		select {
		case <-p.done:
		case <-time.After(probePause):
		case <-ctx.Done():
			p.kill()
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				return fmt.Errorf("rig: %s did not answer in time: %w; its log ends with:\n%s", s.name, err, p.tail())
			}
			return fmt.Errorf("rig: start %s: %w", s.name, ctx.Err())
		}
	}
}

// Stop asks the server to end and waits for it. When it has not ended after 20 s, or
// ctx ends, it is killed, which is an error. A server that does not run is fine.
func (s *Server) Stop(ctx context.Context) error {
	s.changing.Lock()
	defer s.changing.Unlock()
	p := s.running()
	if p == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, stopTimeout)
	defer cancel()
	if err := p.terminate(ctx); err != nil {
		return fmt.Errorf("rig: stop %s: %w", s.name, err)
	}
	return nil
}

// Kill ends the server and its children at once, as a crash would, and returns when
// they are gone. A server that does not run is fine.
func (s *Server) Kill() {
	s.changing.Lock()
	defer s.changing.Unlock()
	if p := s.running(); p != nil {
		p.kill()
	}
}

// Pause freezes the server and its children, and returns when they stand still: their
// connections stay open, and nobody answers.
func (s *Server) Pause() error {
	p := s.running()
	if p == nil {
		return fmt.Errorf("rig: pause %s: it does not run", s.name)
	}
	if err := p.freeze(); err != nil {
		return fmt.Errorf("rig: pause %s: %w", s.name, errors.Join(err, p.thaw()))
	}
	return nil
}

// Resume lets a paused server go on. One that is not paused, or does not run, is fine.
func (s *Server) Resume() error {
	if p := s.running(); p != nil {
		if err := p.thaw(); err != nil {
			return fmt.Errorf("rig: resume %s: %w", s.name, err)
		}
	}
	return nil
}

// AwaitReady returns when a replica reaches all its backends, or with an error when it
// does not within a minute. Replicas of a lab without some of these never do, and other
// servers are ready when they have started: for them it returns at once.
func (s *Server) AwaitReady(ctx context.Context) error {
	if s.ready == nil {
		return nil
	}
	return s.ready(ctx)
}

func (s *Server) running() *process {
	if p := s.proc.Load(); p != nil && !p.ended() {
		return p
	}
	return nil
}

// report tells the rig if the process dies unasked. A death before it was ready is the
// error of Start.
func (s *Server) report(p *process) {
	<-p.done
	if p.asked.Load() || !p.ready.Load() {
		return
	}
	s.rig.died(Exit{Name: s.name, Status: p.status(), Tail: p.tail()})
}
