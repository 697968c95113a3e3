package agent

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"oversell/lab/history"
	"oversell/lab/load"
	"oversell/lab/report"
)

// Config has the settings of an agent.
type Config struct {
	Target  string // base URL of the only service to which the agent sends requests
	Token   string // must not be empty
	Version string // of the program; a coordinator must have the same
	MaxTime time.Duration
	Machine report.Machine
	Log     func(string) // receives a sentence for each event of interest
}

const (
	// greeting is the longest wait for the token. Without a limit, idle connections would use up
	// the agent's.
	greeting = 5 * time.Second
	// lastRun is enough for the end of a run whose coordinator is gone, as after Ctrl-C. A new
	// coordinator waits for this time until the agent is free.
	lastRun = 3 * time.Second
	// maxConnections limits the memory that clients without a token can use.
	maxConnections = 16
	// maxDelay is the longest time between a request to start and the start.
	maxDelay = time.Minute
	// progressPause is the time between two reports of a run.
	progressPause = 200 * time.Millisecond
	// lastRead is the longest wait of a stopped agent until the coordinator has read all records.
	lastRead = 5 * time.Second
	// batch is the number of records in a line.
	batch = 1000
)

var errStopped = errors.New("its operator stopped it")

// Agent sends requests for one coordinator at a time.
type Agent struct {
	config      Config
	occupied    chan struct{} // has a value while a coordinator uses the agent
	coordinator atomic.Value  // the address of the last coordinator, a string
}

// New returns an agent, or an error if the configuration is not safe.
func New(c Config) (*Agent, error) {
	target, err := load.ParseTarget(c.Target)
	switch {
	case err != nil:
		return nil, err
	case c.Token == "":
		return nil, errors.New("--token is missing: without it, anyone could send load from here")
	case c.MaxTime <= 0:
		return nil, fmt.Errorf("max-time %v: must be above 0s", c.MaxTime)
	}
	c.Target = target.String()
	return &Agent{config: c, occupied: make(chan struct{}, 1)}, nil
}

// Serve accepts coordinators until ctx ends. A run that is in progress is then stopped, and its
// records are sent.
func (a *Agent) Serve(ctx context.Context, listener net.Listener) error {
	defer context.AfterFunc(ctx, func() { _ = listener.Close() })()
	free := make(chan struct{}, maxConnections)
	var sessions sync.WaitGroup
	defer sessions.Wait()
	for {
		free <- struct{}{}
		socket, err := listener.Accept()
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return fmt.Errorf("accept a coordinator: %w", err)
		}
		sessions.Go(func() {
			defer func() { _ = socket.Close(); <-free }()
			a.serve(ctx, socket)
		})
	}
}

func (a *Agent) serve(ctx context.Context, socket net.Conn) {
	s := &session{agent: a, link: newLink[request, answer](socket, maxRequest), epoch: time.Now()}
	// The deadline is for the whole greeting, so a client cannot extend it with single bytes.
	opened := context.AfterFunc(ctx, func() { _ = socket.Close() })
	first, err := s.link.receive(greeting)
	if err != nil || !opened() {
		return
	}
	from := socket.RemoteAddr().String()
	if refusal := a.refuse(first.Hello); refusal != "" {
		a.config.Log(fmt.Sprintf("refused %s: %s", from, refusal))
		_ = s.link.send(answer{Refused: refusal})
		return
	}
	select {
	case a.occupied <- struct{}{}:
		defer func() { <-a.occupied }()
		a.coordinator.Store(from)
	case <-time.After(lastRun):
		_ = s.link.send(answer{Refused: fmt.Sprintf("it already works for another coordinator, %s. Try again when that has ended", a.coordinator.Load())})
		return
	}
	a.config.Log("works for the coordinator " + from)
	if s.link.send(answer{Welcome: &a.config.Machine}) != nil {
		return
	}
	a.config.Log(fmt.Sprintf("the coordinator %s is gone: %v", from, s.work(ctx)))
}

// refuse returns a sentence if the agent must not work for a coordinator. Only one with the token
// learns anything about the agent.
func (a *Agent) refuse(h *hello) string {
	switch {
	case h == nil || subtle.ConstantTimeCompare([]byte(h.Token), []byte(a.config.Token)) != 1:
		return "the token is wrong. Pass the agent's token with --token or LAB_TOKEN"
	case h.Version != a.config.Version:
		return fmt.Sprintf("it has version %q of oversell, and this program has %q. Use the same version on all machines", a.config.Version, h.Version)
	case h.Target != a.config.Target:
		return fmt.Sprintf("it sends requests only to %s, not to %s. Start it with the same --target", a.config.Target, h.Target)
	}
	return ""
}

// session is the connection with one coordinator.
type session struct {
	agent *Agent
	link  *link[request, answer]
	epoch time.Time // the zero of the agent's clock
	plan  *load.Plan
	stop  context.CancelCauseFunc // of the run; nil before the first
	run   sync.WaitGroup
	over  chan struct{} // closed when the run has ended; nil before the first
}

// work does what the coordinator requests, until the connection or ctx ends. Then it ends the run.
func (s *session) work(ctx context.Context) error {
	running, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	quit := make(chan struct{})
	requests, failed := make(chan request), make(chan error, 1)
	var others sync.WaitGroup
	others.Go(func() { s.link.keepAlive(quit) })
	others.Go(func() { failed <- s.read(requests, quit) })
	defer func() {
		cancel(errors.New("the coordinator is gone"))
		s.run.Wait()
		close(quit)
		_ = s.link.socket.Close()
		others.Wait()
	}()
	stopped := ctx.Done()
	for {
		select {
		case in := <-requests:
			if err := s.do(running, in); err != nil {
				return err
			}
		case err := <-failed:
			return err
		case <-stopped:
			stopped = nil
			cancel(errStopped)
			s.run.Wait() // until the records are sent
			_ = s.link.send(answer{Refused: errStopped.Error()})
			// The coordinator closes the connection. If the agent closed it while bytes arrive, the
			// coordinator could lose the last records.
			defer time.AfterFunc(lastRead, func() { _ = s.link.socket.Close() }).Stop()
		}
	}
}

func (s *session) read(requests chan<- request, quit <-chan struct{}) error {
	for {
		in, err := s.link.receive(silence)
		if err != nil {
			return err
		}
		select {
		case requests <- in:
		case <-quit:
			return nil
		}
	}
}

func (s *session) do(ctx context.Context, in request) error {
	switch {
	case in.Clock:
		now := time.Now()
		return s.link.send(answer{Clock: &reading{Elapsed: now.Sub(s.epoch), Wall: now}})
	case in.Stop && s.stop != nil:
		s.stop(context.Canceled)
	case in.Plan != nil:
		if err := s.prepare(*in.Plan); err != nil {
			return s.link.send(answer{Refused: err.Error()})
		}
		return s.link.send(answer{Ready: true})
	case in.Start != nil:
		return s.start(ctx, *in.Start)
	}
	return nil
}

// prepare accepts a plan only within the agent's limits. It never uses the plan's target and path.
func (s *session) prepare(p load.Plan) error {
	if s.running() {
		return errors.New("its last run has not ended")
	}
	c := s.agent.config
	p.Target, p.Path, p.Timeout, p.Until = c.Target, "", 0, nil
	if err := p.Validate(); err != nil {
		return err
	}
	// Validate limits the numbers of clients and of requests, and the times of a request.
	if p.RampUp > c.MaxTime {
		return fmt.Errorf("ramp-up %v: longer than the agent's --max-time, %v", p.RampUp, c.MaxTime)
	}
	if requests := float64(p.Clients * p.Loops); p.Rate > 0 && p.Length == 0 && requests/float64(p.Rate) > c.MaxTime.Seconds() {
		return fmt.Errorf("%.0f requests at %v take longer than the agent's --max-time, %v", requests, p.Rate, c.MaxTime)
	}
	s.plan = &p
	return nil
}

func (s *session) running() bool {
	if s.over == nil {
		return false
	}
	select {
	case <-s.over:
		return false
	default:
		return true
	}
}

func (s *session) start(ctx context.Context, at time.Duration) error {
	delay := at - time.Since(s.epoch)
	switch {
	case s.plan == nil || s.running():
		return errors.New("a start without a plan")
	case delay > maxDelay:
		return fmt.Errorf("the start is %v away", delay)
	}
	plan := *s.plan
	s.plan = nil
	run, stop := context.WithCancelCause(ctx)
	s.stop, s.over = stop, make(chan struct{})
	over := s.over
	s.run.Go(func() {
		defer close(over)
		defer stop(nil)
		s.send(run, plan, at)
	})
	return nil
}

// send sends the requests of a plan, and then their records.
func (s *session) send(ctx context.Context, plan load.Plan, at time.Duration) {
	delay := time.NewTimer(at - time.Since(s.epoch))
	defer delay.Stop()
	var h history.History
	var err error
	select {
	case <-delay.C:
		limited, cancel := context.WithTimeoutCause(ctx, s.agent.config.MaxTime, fmt.Errorf("its --max-time of %v is over", s.agent.config.MaxTime))
		h, err = load.Run(limited, plan, s.report())
		cancel()
	case <-ctx.Done():
		h.Start, err = time.Now(), context.Cause(ctx)
	}
	for ops := range slices.Chunk(h.Ops, batch) {
		if s.link.send(answer{Ops: ops}) != nil {
			return // the coordinator is gone
		}
	}
	end := done{Began: h.Start.Sub(s.epoch)}
	if err != nil {
		end.Stopped = err.Error()
	}
	_ = s.link.send(answer{Done: &end})
}

// report returns a function that sends the progress to the coordinator, with pauses.
func (s *session) report() func(load.Progress) {
	var last time.Time
	return func(p load.Progress) {
		if time.Since(last) < progressPause && p.Done < p.Total {
			return
		}
		last = time.Now()
		_ = s.link.send(answer{Progress: &p}) // a lost coordinator is noticed by its silence
	}
}
