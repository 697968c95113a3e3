package rig

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	// readyTimeout is far longer than a slow machine needs, so only a server that hangs fails.
	readyTimeout = 2 * time.Minute
	// stopTimeout limits a graceful stop. A replica finishes its running requests.
	stopTimeout = 20 * time.Second
	// probeTimeout limits one probe, probePause is the time between two.
	probeTimeout = time.Second
	probePause   = 10 * time.Millisecond
)

// Server is one server of a rig. A restart keeps its port and its folder, and the data of MySQL,
// ZooKeeper and etcd. Its methods may be called from several goroutines; Start, Stop and Kill
// wait for each other.
type Server struct {
	command
	name string
	addr string // host:port
	rig  *Rig

	prepare  func(ctx context.Context) error // once, before the first start; may be nil
	before   func() error                    // before each start; may be nil
	probe    func(ctx context.Context) error // returns nil if the server serves
	readyURL string                          // answers 200 when it is ready; empty means as soon as it serves
	clock    string                          // the file with its clock's offset; empty means the machine's clock

	changing sync.Mutex // held by Start, Stop and Kill
	proc     atomic.Pointer[process]
}

func (r *Rig) newServer(name, program string, preferred int) *Server {
	port, err := r.ports.take(preferred)
	r.check(err)
	s := &Server{name: name, addr: hostPort(port), rig: r, command: command{path: program}}
	s.dir = filepath.Join(r.dir, name)
	s.mkdir("")
	return s
}

// newBackend adds the server i of its kind, counted from 0. If first is not 0, it must get the port first+i.
func (r *Rig) newBackend(name, program string, first, i int) *Server {
	if first == 0 {
		return r.newServer(name, program, 0)
	}
	port := first + i
	s := r.newServer(name, program, port)
	if s.addr != hostPort(port) {
		r.inUse += fmt.Sprintf("  port %d (%s) is in use by %s\n", port, name, userOf(port))
	}
	return s
}

func (s *Server) mkdir(name string) string {
	path := filepath.Join(s.dir, name)
	if err := os.Mkdir(path, 0o700); err != nil {
		s.rig.check(fmt.Errorf("rig: %w", err))
	}
	return path
}

func (s *Server) write(name, text string) string {
	path := filepath.Join(s.dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		s.rig.check(fmt.Errorf("rig: %w", err))
	}
	return path
}

func (s *Server) port() string {
	_, port, _ := strings.Cut(s.addr, ":")
	return port
}

// Name returns the server's name, such as redis-1.
func (s *Server) Name() string { return s.name }

// Kind returns the kind of a server with this name, such as redis for redis-3.
func Kind(server string) string {
	kind, _, _ := strings.Cut(server, "-")
	return kind
}

// Addr returns the host:port where the server listens.
func (s *Server) Addr() string { return s.addr }

// Log returns the path of the file with the server's output.
func (s *Server) Log() string { return filepath.Join(s.rig.dir, s.name+".log") }

// PID returns the id of the server's process and process group, or 0 if it is not running.
func (s *Server) PID() int {
	if p := s.running(); p != nil {
		return p.pid()
	}
	return 0
}

// Start starts a server that was stopped, was killed or died, on the same port, and returns when
// it serves. If that takes longer than a minute, or ctx ends, Start kills it.
func (s *Server) Start(ctx context.Context) error {
	s.changing.Lock()
	defer s.changing.Unlock()
	if s.running() != nil {
		return fmt.Errorf("rig: start %s: it is running already", s.name)
	}
	if s.rig.ctx.Err() != nil {
		return fmt.Errorf("rig: start %s: the rig is closed", s.name)
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
	if s.before != nil {
		if err := s.before(); err != nil {
			return err
		}
	}
	program := s.command
	if slices.Contains(s.rig.backends, s) {
		program = s.rig.onDisk(program)
	}
	p, err := s.rig.spawn(program, s.Log())
	if err != nil {
		return err
	}
	s.proc.Store(p)
	go s.report(p)
	if err := s.await(ctx, p); err != nil {
		return err
	}
	s.rig.logf("%-10s ready on %s after %.2f s, pid %d", s.name, s.addr, time.Since(began).Seconds(), p.pid())
	return nil
}

func (s *Server) await(ctx context.Context, p *process) error {
	err := poll(ctx, p.done, s.probe)
	if err == nil && !p.ended() {
		p.ready.Store(true)
	}
	switch {
	case p.ended(): // even if the probe went well: another program may have taken the port
		return fmt.Errorf("rig: %s ended at its start (%s), its log ends with:\n%s", s.name, p.cmd.ProcessState, p.tail())
	case err == nil:
		return nil
	}
	p.kill()
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("rig: %s did not answer in time: %w; its log ends with:\n%s", s.name, err, p.tail())
	}
	return fmt.Errorf("rig: start %s: %w", s.name, ctx.Err())
}

// Stop ends a running server gracefully. After 20 s, or if ctx ends, Stop kills it, with an error.
func (s *Server) Stop(ctx context.Context) error {
	s.changing.Lock()
	defer s.changing.Unlock()
	p := s.running()
	if p == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, stopTimeout)
	defer cancel()
	p.asked.Store(true)
	end := syscall.SIGTERM
	if s.name == "postgres" {
		end = syscall.SIGINT // after SIGTERM, it waits until all clients have left
	}
	if err := p.cmd.Process.Signal(end); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("rig: stop %s: %w", s.name, err)
	}
	select {
	case <-p.done:
		return nil
	case <-ctx.Done():
		p.kill()
		return fmt.Errorf("rig: stop %s: it had to be killed: %w", s.name, context.Cause(ctx))
	}
}

// Kill ends a running server and its children at once, as a crash would, and awaits their end.
func (s *Server) Kill() {
	s.changing.Lock()
	defer s.changing.Unlock()
	if p := s.running(); p != nil {
		p.kill()
	}
}

// Pause returns when SIGSTOP has stopped the server and its children. Connections stay open.
func (s *Server) Pause() error {
	p := s.running()
	if p == nil {
		return fmt.Errorf("rig: pause %s: it is not running", s.name)
	}
	err := syscall.Kill(-p.pid(), syscall.SIGSTOP)
	for end := time.Now().Add(groupTimeout); err == nil && !groupFrozen(p.pid()); time.Sleep(time.Millisecond) {
		switch {
		case p.ended():
			err = os.ErrProcessDone
		case time.Now().After(end):
			err = errors.New("some threads of the process still run")
		}
	}
	if err != nil {
		return fmt.Errorf("rig: pause %s: %w", s.name, errors.Join(err, s.Resume()))
	}
	return nil
}

// Resume resumes a paused server. It does nothing if the server is not paused or not running.
func (s *Server) Resume() error {
	p := s.running()
	if p == nil {
		return nil
	}
	if err := syscall.Kill(-p.pid(), syscall.SIGCONT); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("rig: resume %s: %w", s.name, err)
	}
	return nil
}

// Frozen reports whether all threads of the server and its children are stopped. Only Linux shows that, so elsewhere
// it returns true.
func (s *Server) Frozen() bool { return groupFrozen(s.PID()) }

// AwaitReady waits until a replica reaches all its backends, or nginx reaches a replica. After a
// minute it returns an error. It returns at once for other servers, and for replicas of a rig
// without all backends, which never become ready.
func (s *Server) AwaitReady(ctx context.Context) error {
	if s.readyURL == "" {
		return nil
	}
	return Await(ctx, "the service is ready", func(ctx context.Context) error { return get(ctx, s.readyURL) })
}

// BringUp starts the server unless it is running, and waits as AwaitReady does.
func (s *Server) BringUp(ctx context.Context) error {
	if s.running() == nil {
		if err := s.Start(ctx); err != nil {
			return err
		}
	}
	return s.AwaitReady(ctx)
}

func (s *Server) running() *process {
	if p := s.proc.Load(); p != nil && !p.ended() {
		return p
	}
	return nil
}

// report notifies the rig when a ready server dies, and starts a replica again, see Config.Restart. If it was not
// ready, Start returns the error.
func (s *Server) report(p *process) {
	<-p.done
	if !p.ready.Load() || p.asked.Load() {
		return
	}
	died := Exit{Name: s.name, Status: p.cmd.ProcessState.String(), Tail: p.tail()}
	if !s.rig.died(died) || !s.rig.cfg.Restart || !slices.Contains(s.rig.replicas, s) {
		return
	}
	if err := s.Start(s.rig.ctx); err == nil {
		s.rig.logf("%s (pid %d) died (%s); started again as pid %d", s.name, p.pid(), died.Status, s.PID())
	} else if s.rig.ctx.Err() == nil {
		s.rig.logf("%s (pid %d) died (%s), and could not be started again: %v", s.name, p.pid(), died.Status, err)
	}
}
