package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"oversell/lab/history"
	"oversell/lab/load"
	"oversell/lab/report"
)

const (
	// comparisons is the number of round trips in which two clocks are compared.
	comparisons = 10
	// lead is the time from the last comparison until the start. All agents must receive the start
	// in this time.
	lead = 200 * time.Millisecond
)

// Coordinator sends loads with agents. Only one load at a time is allowed.
type Coordinator struct {
	epoch  time.Time // the zero of the coordinator's clock
	agents []*remote
}

// remote is the connection to one agent.
type remote struct {
	address string
	machine report.Machine
	link    *link[answer, request]
	clock   clock
	answers chan answer
	quit    chan struct{}
	failed  error // why answers was closed
	others  sync.WaitGroup
}

// Dial connects to all agents and compares the clocks. An agent that refuses is an error.
func Dial(ctx context.Context, addresses []string, version, token, target string) (*Coordinator, error) {
	base, err := load.ParseTarget(target)
	if err != nil {
		return nil, err
	}
	c := &Coordinator{epoch: time.Now()}
	for _, address := range addresses {
		r, err := dial(ctx, address, hello{Version: version, Token: token, Target: base.String()})
		if err != nil {
			c.Close()
			return nil, fmt.Errorf("agent %s: %w", address, err)
		}
		c.agents = append(c.agents, r)
	}
	if err := c.each(func(r *remote, _ int) error { return r.compare(ctx, c.epoch) }); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

func dial(ctx context.Context, address string, greet hello) (*remote, error) {
	dialer := net.Dialer{Timeout: greeting}
	socket, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("cannot connect: %w. Start it with: oversell agent", err)
	}
	r := &remote{
		address: address, link: newLink[answer, request](socket, maxAnswer),
		answers: make(chan answer, 1), quit: make(chan struct{}),
	}
	err = r.link.send(request{Hello: &greet})
	var first answer
	if err == nil {
		first, err = r.link.receive(silence)
	}
	switch {
	case err != nil:
		err = fmt.Errorf("no answer: %w. Is it an agent of oversell?", err)
	case first.Refused != "":
		err = errors.New(first.Refused)
	case first.Welcome == nil:
		err = errors.New("its answer was not understood. Is it an agent of oversell?")
	}
	if err != nil {
		_ = socket.Close()
		return nil, err
	}
	r.machine = *first.Welcome
	r.others.Go(func() { r.link.keepAlive(r.quit) })
	r.others.Go(r.read)
	return r, nil
}

// read receives until the connection ends. The agent sends a line each second, also without a run.
func (r *remote) read() {
	defer close(r.answers)
	for {
		a, err := r.link.receive(silence)
		if err != nil {
			r.failed = fmt.Errorf("the connection is lost: %w", err)
			return
		}
		if a.Refused == "" && a.Clock == nil && !a.Ready && a.Progress == nil && a.Ops == nil && a.Done == nil {
			continue
		}
		select {
		case r.answers <- a:
		case <-r.quit:
			return
		}
	}
}

// next returns the next answer.
func (r *remote) next() (answer, error) {
	a, ok := <-r.answers
	switch {
	case !ok:
		return a, cmp.Or(r.failed, errors.New("the connection is closed"))
	case a.Refused != "":
		return a, errors.New(a.Refused)
	}
	return a, nil
}

func (r *remote) compare(ctx context.Context, epoch time.Time) error {
	samples := make([]sample, comparisons)
	for i := range samples {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		sent := time.Now()
		if err := r.link.send(request{Clock: true}); err != nil {
			return err
		}
		a, err := r.next()
		if err != nil {
			return err
		}
		if a.Clock == nil {
			return errors.New("it did not send its time")
		}
		received := time.Now()
		samples[i] = sample{
			sent: sent.Sub(epoch), received: received.Sub(epoch), read: a.Clock.Elapsed,
			wall: a.Clock.Wall.Round(0).Sub(sent.Add(received.Sub(sent) / 2).Round(0)),
		}
	}
	r.clock = estimate(samples)
	return nil
}

// Close ends the connections. An agent that still sends requests stops.
func (c *Coordinator) Close() {
	for _, r := range c.agents {
		close(r.quit)
		_ = r.link.socket.Close()
		r.others.Wait()
	}
}

// Clocks returns a sentence for each agent.
func (c *Coordinator) Clocks() (all []string) {
	for _, r := range c.agents {
		all = append(all, fmt.Sprintf("agent %s: its clock differs by %+.3f ms from this one, with an error of at most %.3f ms; %s",
			r.address, ms(r.clock.wall), ms(r.clock.within), r.machine))
	}
	return all
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// each calls do for all agents at the same time, and joins the errors.
func (c *Coordinator) each(do func(r *remote, i int) error) error {
	errs := make([]error, len(c.agents))
	var all sync.WaitGroup
	for i, r := range c.agents {
		all.Go(func() {
			if err := do(r, i); err != nil {
				errs[i] = fmt.Errorf("agent %s: %w", r.address, err)
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// Run sends a load as load.Run does. The times of all requests are on the coordinator's clock.
//
// If an agent fails, the others stop, and Run returns an error that names it. If requests may have
// been sent, the history is then marked as stopped.
func (c *Coordinator) Run(ctx context.Context, p load.Plan, progress func(load.Progress)) (history.History, error) {
	if err := p.Validate(); err != nil {
		return history.History{}, fmt.Errorf("load: %w", err)
	}
	address, err := p.URL()
	if err != nil {
		return history.History{}, err
	}
	shares, err := divide(p, len(c.agents))
	if err != nil {
		return history.History{}, fmt.Errorf("load: %w", err)
	}
	// All agents accept their plans before the first one starts.
	err = c.each(func(r *remote, i int) error {
		if err := r.prepare(shares[i].plan); err != nil {
			return err
		}
		return r.compare(ctx, c.epoch)
	})
	if err != nil {
		return history.History{}, err
	}
	start := time.Since(c.epoch) + lead
	run := newMerge(c, shares, progress)
	running, stop := context.WithCancel(ctx)
	defer stop()
	err = c.each(func(r *remote, i int) error {
		err := r.run(running, start+shares[i].phase, func(a answer) { run.add(i, a) })
		if err != nil {
			stop() // the others
		}
		return err
	})
	h := run.history(start)
	h.Strategy, h.URL, h.Start, h.Clients, h.Loops = p.Strategy, address, c.epoch.Add(start), p.Clients, p.Loops
	h.Rate, h.Length, h.Stopped = float64(p.Rate), p.Length, ctx.Err() != nil || err != nil
	if ctx.Err() != nil {
		return h, context.Cause(ctx)
	}
	return h, err
}

func (r *remote) prepare(p load.Plan) error {
	p.Target, p.Path = "", "" // an agent uses its own
	if err := r.link.send(request{Plan: &p}); err != nil {
		return err
	}
	a, err := r.next()
	if err == nil && !a.Ready {
		err = errors.New("it did not accept the plan")
	}
	return err
}

// run starts the agent and passes on its answers, until the run has ended. When ctx ends, the agent
// stops, and sends the records of what it has sent.
func (r *remote) run(ctx context.Context, start time.Duration, add func(answer)) error {
	at := r.clock.agent(start)
	if err := r.link.send(request{Start: &at}); err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { _ = r.link.send(request{Stop: true}) })()
	for {
		a, err := r.next()
		if err != nil {
			return err
		}
		add(a)
		if a.Done == nil {
			continue
		}
		if a.Done.Stopped != "" && ctx.Err() == nil {
			return fmt.Errorf("the run was stopped: %s", a.Done.Stopped)
		}
		return nil
	}
}

// merge joins the progress and the records of all agents.
type merge struct {
	coordinator *Coordinator
	shares      []share
	progress    func(load.Progress)

	mu     sync.Mutex
	latest []load.Progress
	parts  []part
}

type part struct {
	ops  []history.Op
	done *done
}

func newMerge(c *Coordinator, shares []share, progress func(load.Progress)) *merge {
	m := &merge{coordinator: c, shares: shares, progress: progress, latest: make([]load.Progress, len(shares)), parts: make([]part, len(shares))}
	for i, s := range shares {
		m.latest[i].Total = s.plan.Clients * s.plan.Loops
	}
	return m
}

func (m *merge) add(i int, a answer) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.parts[i].ops = append(m.parts[i].ops, a.Ops...)
	if a.Done != nil {
		m.parts[i].done = a.Done
	}
	if a.Progress != nil {
		m.latest[i] = *a.Progress
		if m.progress != nil {
			m.progress(load.Sum(m.latest))
		}
	}
}

// history returns the records of all agents, in the time since start.
func (m *merge) history(start time.Duration) (h history.History) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all [][]history.Op
	for i, r := range m.coordinator.agents {
		s, p := m.shares[i], m.parts[i]
		about := history.Agent{
			Address: r.address, Machine: r.machine.String(), Clients: s.plan.Clients, Ops: len(p.ops),
			Offset: r.clock.wall, Error: r.clock.within,
		}
		if p.done == nil { // without its start, the times of its records would be wrong
			h.Missing += s.plan.Clients * s.plan.Loops
			p.ops, about.Ops = nil, 0
		} else {
			began := r.clock.coordinator(p.done.Began) - start
			about.Late = began - s.phase
			shift(p.ops, began, s)
		}
		all = append(all, p.ops)
		h.Agents = append(h.Agents, about)
	}
	h.Ops = history.Merge(all)
	return h
}

// shift changes the numbers of the clients, and the times from those since the agent's start.
func shift(ops []history.Op, began time.Duration, s share) {
	for i := range ops {
		op := &ops[i]
		op.Client += s.first
		op.Call += began
		op.Return += began
		if s.plan.Rate > 0 {
			op.Due += began
		}
	}
}

// Addresses rejects a list of agents with an address that is wrong or occurs twice.
func Addresses(all []string) error {
	for i, address := range all {
		if host, port, err := net.SplitHostPort(address); err != nil || host == "" || port == "" {
			return fmt.Errorf("agent %q: must be host:port, such as 127.0.0.1:8400", address)
		}
		if slices.Contains(all[:i], address) {
			return fmt.Errorf("agent %s is named twice", address)
		}
	}
	return nil
}
