package experiment

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"time"

	"oversell/api"
	"oversell/lab/chaos"
	"oversell/lab/check"
	"oversell/lab/fault"
	"oversell/lab/history"
	"oversell/lab/rig"
)

// settled is how long a request takes no step before the next move: it waits for the lock, or for a fault to end. It
// has stopped or ended long before, if it can.
const settled = 400 * time.Millisecond

// conductor carries out the moves of one plan.
type conductor struct {
	bed      *Testbed
	subject  Subject
	servers  []*rig.Server
	clients  [chaos.Clients]*buyer
	lasting  []*struck
	seen     map[string]bool // owners of requests that have begun
	delayed  map[string]bool // owners of requests that were stopped before their grant
	ops      []history.Op
	hands    []*byHand // of a primitive
	spans    []history.Span
	coverage chaos.Coverage
	lagging  *rig.Link     // to the replica of Redis, which gets no writes if the plan has a fail-over; otherwise nil
	healed   time.Duration // since the start of the recording, when all faults had ended
}

// buyer is a client, whose requests go to one replica.
type buyer struct {
	client  int      // from 0
	on      int      // the number of its replica
	owner   string   // of its request, as soon as the request has taken a step
	stopped api.Step // at which its request has stopped, or ""
	gone    bool     // the process of its replica is frozen or dead
	cancel  context.CancelFunc
	ended   chan struct{} // nil before its first request
	op      history.Op
	hand    *byHand // its last request to a primitive
	touched bool    // a command of it is or was held back, or its answer lost: its links stay as they are until the end
}

// struck is a fault that lasts.
type struck struct {
	chaos.Move
	fault fault.Fault
	heal  fault.Heal
	span  int // its index in spans

	landed bool
	lost   bool          // the process has died whose command was held back: it never sent it
	phases []chaos.Phase // of the requests that it struck
}

func (bed *Testbed) conductor(s Subject) *conductor {
	c := &conductor{bed: bed, subject: s, servers: bed.lockServers(s.Card), seen: map[string]bool{}, delayed: map[string]bool{}, coverage: chaos.Coverage{}}
	for i := range c.clients {
		c.clients[i] = &buyer{client: i, on: chaos.Replica(i)}
	}
	return c
}

// do carries out one move. It skips a move that is impossible, such as to resume a request that has ended, and returns false:
// so a plan can be shortened at any place.
func (c *conductor) do(ctx context.Context, m chaos.Move) (done bool, err error) {
	b := c.clients[m.Client]
	defer func() {
		for _, s := range c.lasting {
			c.observe(ctx, s)
		}
	}()
	switch m.Do {
	case chaos.Passes:
		return true, sleep(ctx, 4*Lease/3)
	case chaos.Heals:
		return c.heal(ctx, m)
	case chaos.Sells:
		done = c.subject.begins() == m.Do && !b.running() && b.stopped == "" && !c.gone(b)
		if done {
			err = c.sell(ctx, b, m)
		}
	case chaos.Awaits, chaos.Locks:
		if done = c.subject.begins() == m.Do && !b.running() && !c.gone(b) && !b.hand.holds(); done {
			err = c.lock(ctx, b, m)
		}
	case chaos.Counts:
		if done = c.subject.begins() == chaos.Awaits && !b.running() && !c.gone(b); done {
			if err = c.count(ctx, b); err == nil && !b.running() && b.hand.answer.Left == 0 {
				_ = c.awaitWoken(ctx, settled) // else their next moves would be impossible
			}
		}
	case chaos.Unlocks:
		if done = c.subject.begins() == chaos.Locks && b.hand != nil && !b.running() && !c.gone(b); done {
			err = c.unlock(ctx, b)
		}
	case chaos.Resumes:
		done = b.stopped != "" && !c.gone(b)
		if done {
			err = c.resume(ctx, b, m.At)
		}
	case chaos.Cancels:
		if done = b.running(); done {
			b.cancel()
			<-b.ended
		}
	default:
		return c.strike(ctx, m)
	}
	return done, err
}

// gone reports whether the process of a client is frozen or dead.
func (c *conductor) gone(b *buyer) bool { return c.clients[b.on].gone }

func (b *buyer) running() bool { return b.ended != nil && !isClosed(b.ended) }

func (c *conductor) sell(ctx context.Context, b *buyer, m chaos.Move) error {
	c.collect(b)
	if b.client == b.on { // a request in the same process may have stopped
		if err := c.bed.replica(b.on).ResumeAll(ctx); err != nil { // an earlier request has not reached its step
			return err
		}
	}
	if m.At != "" {
		if err := c.bed.stop(ctx, b.on, c.subject, string(m.At)); err != nil {
			return err
		}
	}
	params := wait(grantBound)
	if m.Try {
		params = wait(0)
	}
	if m.Nested {
		params.Set("nested", "true")
	}
	asking, cancel := context.WithCancel(context.WithoutCancel(ctx))
	b.owner, b.cancel, b.ended = "", cancel, make(chan struct{})
	go func(ended chan struct{}) {
		defer close(ended)
		defer cancel()
		b.op = c.bed.buy(asking, b.on, c.subject, params)
		b.op.Client = b.client + 1
	}(b.ended)
	return c.settle(ctx, b)
}

// collect keeps the answer of a request that has ended.
func (c *conductor) collect(b *buyer) {
	if b.ended != nil && isClosed(b.ended) && b.hand == nil {
		c.ops = append(c.ops, b.op)
		b.ended = nil
	}
}

func (c *conductor) resume(ctx context.Context, b *buyer, at api.Step) error {
	if at != "" {
		if err := c.bed.stop(ctx, b.on, c.subject, string(at)); err != nil {
			return err
		}
	}
	b.stopped = ""
	if err := c.bed.replica(b.on).Resume(ctx, b.owner); err != nil {
		return err
	}
	return c.settle(ctx, b)
}

// settle waits until the request has stopped or ended, or takes no step any more.
func (c *conductor) settle(ctx context.Context, b *buyer) error {
	steps, since := 0, time.Now()
	for time.Since(since) < settled {
		events := c.bed.rec.eventsOf(c.subject.key())
		mine := slices.DeleteFunc(events, func(e history.Event) bool {
			return e.Replica != name(b.on) || c.seen[e.Owner] && e.Owner != b.owner
		})
		if len(mine) > steps {
			steps, since = len(mine), time.Now()
			b.owner = mine[0].Owner
			c.seen[b.owner] = true
		}
		paused, err := c.bed.replica(b.on).Paused(ctx)
		if err != nil {
			return err
		}
		own := func(p api.Paused) bool { return p.Key == c.subject.key() && (p.Owner == b.owner || !c.seen[p.Owner]) }
		if i := slices.IndexFunc(paused, own); i >= 0 {
			b.owner, b.stopped = paused[i].Owner, paused[i].Step
			c.seen[b.owner] = true
			c.delayed[b.owner] = c.delayed[b.owner] || chaos.PhaseAfter(b.stopped) == chaos.Wait
			return nil
		}
		if !b.running() {
			return nil
		}
		if err := sleep(ctx, 10*time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}

// strike injects a fault, and counts whom it has struck. It skips a fault that lasts already.
func (c *conductor) strike(ctx context.Context, m chaos.Move) (done bool, err error) {
	b := c.clients[m.Client]
	if c.gone(b) && !m.Do.OnServer() || c.lasts(m.Do, m.Client) >= 0 || m.Do.OnLink() && !c.linksFree(m.Client) {
		return false, nil
	}
	if m.Do.OnServer() && c.failedOver() || m.Do == chaos.FailsOver && !c.allLinksFree() {
		return false, nil
	}
	f, ok := c.faultOf(m)
	if !ok {
		return false, nil
	}
	b.touched = b.touched || m.Do == chaos.Holds || m.Do == chaos.HoldsRow || m.Do == chaos.Loses
	count := c.coverage[m.Do]
	count.Injected++
	c.coverage[m.Do] = count
	s := &struck{Move: m, fault: f, span: len(c.spans), phases: c.phases(m)}
	c.spans = append(c.spans, history.Span{What: f.Name, Who: f.Target, From: c.bed.since()})
	if s.heal, err = f.Inject(ctx); err != nil {
		return true, fmt.Errorf("%s: %w", m, err)
	}
	if m.Do == chaos.Freezes || m.Do == chaos.Dies {
		b.gone = true
	}
	if m.Do == chaos.Dies {
		b.stopped = ""
		for _, held := range c.lasting {
			held.lost = held.lost || held.Do.OnLink() && held.Client == m.Client
		}
	}
	c.lasting = append(c.lasting, s)
	if m.Do == chaos.Starves || m.Do == chaos.Stalls {
		err = sleep(ctx, Lease/2)
	}
	if !m.Do.Lasts() && m.Do != chaos.Loses {
		err = errors.Join(err, c.end(ctx, s))
	}
	return true, err
}

// failedOver reports whether the links lead to the replica of Redis.
func (c *conductor) failedOver() bool { return c.lasts(chaos.FailsOver, 0) >= 0 }

// linksFree reports whether the links of a client have no fault. A link has one at a time.
func (c *conductor) linksFree(client int) bool {
	return !c.failedOver() && !c.clients[client].touched && !slices.ContainsFunc(c.lasting, func(s *struck) bool { return s.Do.OnLink() && s.Client == client })
}

func (c *conductor) allLinksFree() bool {
	for client := range c.clients {
		if !c.linksFree(client) {
			return false
		}
	}
	return true
}

// lasts returns the index of a fault that lasts, or -1.
func (c *conductor) lasts(v chaos.Verb, client int) int {
	return slices.IndexFunc(c.lasting, func(s *struck) bool { return s.Do == v && s.Client == client })
}

// phase returns where a client's request is.
func (c *conductor) phase(b *buyer) chaos.Phase {
	if c.subject.primitive != nil {
		return b.handPhase()
	}
	if b.stopped != "" { // the recording may lag behind
		return chaos.PhaseAfter(b.stopped)
	}
	if !b.running() {
		return chaos.NoPhase
	}
	last := api.Step("")
	for _, e := range c.bed.rec.eventsOf(c.subject.key()) {
		if e.Owner == b.owner && e.Replica == name(b.on) {
			last = api.Step(e.Step)
		}
	}
	return chaos.PhaseAfter(last)
}

// heal heals the fault that a move names, if it lasts.
func (c *conductor) heal(ctx context.Context, m chaos.Move) (done bool, err error) {
	i := c.lasts(m.Of, m.Client)
	if i < 0 {
		return false, nil
	}
	err = c.end(ctx, c.lasting[i])
	if b := c.clients[m.Client]; err == nil && b.running() && !c.gone(b) && b.stopped == "" {
		err = c.settle(ctx, b)
	}
	return true, err
}

// phases returns the phases of the requests that a fault strikes now.
func (c *conductor) phases(m chaos.Move) (all []chaos.Phase) {
	for i, b := range c.clients {
		if i == m.Client || m.Do.OnServer() {
			all = append(all, c.phase(b))
		}
	}
	return all
}

// observe counts a fault that has landed. One of links lands at a message, which comes later than the fault.
func (c *conductor) observe(ctx context.Context, s *struck) {
	if s.landed || s.fault.Landed(ctx) != nil {
		return
	}
	s.landed = true
	if s.Do.OnLink() {
		s.phases = c.phases(s.Move)
	}
	count := c.coverage[s.Do]
	count.Landed++
	for _, p := range s.phases {
		count.In[p]++
	}
	c.coverage[s.Do] = count
}

// end ends a fault.
func (c *conductor) end(ctx context.Context, s *struck) error {
	c.observe(ctx, s)
	c.lasting = slices.DeleteFunc(c.lasting, func(other *struck) bool { return other == s })
	span := &c.spans[s.span]
	span.To = c.bed.since()
	held := slices.ContainsFunc(s.phases, func(p chaos.Phase) bool { return p == chaos.Critical || p == chaos.Write })
	if s.landed && held && c.subject.Card.Renews && span.To-span.From > Lease/3 {
		count := c.coverage[s.Do]
		count.Renewal++
		c.coverage[s.Do] = count
	}
	if i := slices.IndexFunc(c.lasting, func(other *struck) bool { return other.Do.OnLink() && other.Client == s.Client }); s.Do == chaos.Dies && i >= 0 {
		if err := c.end(ctx, c.lasting[i]); err != nil { // a process that is cut off would never be ready
			return err
		}
	}
	heal := s.heal
	if s.lost {
		heal = restore(c.links(name(s.Client), s.Do))
	}
	if err := heal(ctx); err != nil {
		return fmt.Errorf("heal %s: %w", s.Move, err)
	}
	if s.Do == chaos.Freezes || s.Do == chaos.Dies {
		c.clients[s.Client].gone = false
	}
	return nil
}

// faultOf returns the fault of a move. ok is false if it cannot strike this strategy.
func (c *conductor) faultOf(m chaos.Move) (f fault.Fault, ok bool) {
	on := name(c.clients[m.Client].on)
	if m.Do == chaos.FailsOver {
		return fault.Failover(c.bed.Rig), true
	}
	if m.Do.OnServer() && m.Do != chaos.Deletes {
		if m.Nth > len(c.servers) {
			return f, false
		}
		server := c.servers[max(0, m.Nth-1)]
		return map[chaos.Verb]fault.Fault{
			chaos.Crashes: fault.Kill(server), chaos.Restarts: fault.Restart(server), chaos.Stalls: fault.Stop(server), chaos.Jumps: fault.ClockJump(server, time.Hour),
		}[m.Do], true
	}
	switch m.Do {
	case chaos.Deletes:
		return fault.DeleteLocks(c.bed.Rig, c.subject.Card.lockService()), true
	case chaos.Freezes, chaos.Starves, chaos.Dies:
		server, err := c.bed.Rig.Server(on)
		if err != nil {
			return f, false
		}
		if m.Do != chaos.Dies {
			return fault.Stop(server), true
		}
		f = fault.Kill(server)
		f.Name = "killed" // package check ends the holds of a replica at a span with this word
		return f, true
	}
	links := c.links(on, m.Do)
	switch {
	case len(links) == 0:
		return f, false
	case m.Do == chaos.HoldsRow:
		f = fault.HoldCommand(rig.StockTable, m.Nth, links...)
		f.Name = check.StatementHeld
		return f, true
	case m.Do == chaos.Holds && c.subject.Card.lockService() == "etcd": // each command goes to another member
		return fault.HoldCommand(c.text(), m.Nth, links...), true
	}
	var all []fault.Fault
	for _, link := range links {
		all = append(all, c.onLink(m, link))
	}
	return fault.Together(all...), true
}

// links returns the links of a replica that a fault strikes: to the servers of the lock, or to the database.
func (c *conductor) links(on string, v chaos.Verb) []*rig.Link {
	return slices.DeleteFunc(c.bed.Rig.Links(), func(l *rig.Link) bool {
		ofLock := slices.ContainsFunc(c.servers, func(s *rig.Server) bool { return s.Name() == l.To() })
		return l.From() != on || v == chaos.HoldsRow && service(l.To()) != "mysql" || v != chaos.HoldsRow && !ofLock
	})
}

// text returns what the commands to the lock contain. A program on trial may send any names, and nothing else runs on
// its replica.
func (c *conductor) text() string {
	if c.subject.Card.onTrial() {
		return ""
	}
	return c.subject.lockName()
}

func (c *conductor) onLink(m chaos.Move, l *rig.Link) fault.Fault {
	switch m.Do {
	case chaos.Cut:
		return fault.Cut(l)
	case chaos.Slow:
		return fault.Delay(l, 500*time.Millisecond)
	case chaos.Holds:
		return fault.HoldCommand(c.text(), m.Nth, l)
	case chaos.Loses:
		return fault.LostAnswer(l, c.text(), m.Nth)
	default:
		return fault.Disconnect(l)
	}
}

// finish heals all faults, lets all requests go on, and waits for their answers. Then one more client buys.
func (c *conductor) finish(ctx context.Context) (last history.Op, err error) {
	for len(c.lasting) > 0 {
		err = errors.Join(err, c.end(ctx, c.lasting[len(c.lasting)-1]))
	}
	for _, b := range c.clients {
		if b.client != b.on { // its replica is that of another client
			continue
		}
		if b.touched {
			err = errors.Join(err, restore(append(c.links(name(b.on), chaos.Holds), c.links(name(b.on), chaos.HoldsRow)...))(ctx)) // else a gate would stay
		}
		replica := c.bed.replica(b.on)
		ready := eventually(ctx, name(b.on)+" is ready", func() bool { return replica.Ready(ctx) == nil })
		err = errors.Join(err, ready, replica.ResumeAll(ctx))
		b.stopped = ""
	}
	if c.lagging != nil { // the plan has not reached the fail-over
		err = errors.Join(err, c.lagging.Restore())
	}
	err = errors.Join(err, c.bed.rec.awaitConnected(ctx))
	if err != nil {
		return last, err
	}
	c.healed = c.bed.since()
	if c.subject.begins() == chaos.Awaits {
		if last.Outcome, err = c.openLatch(ctx); err != nil {
			return last, err
		}
	}
	for _, b := range c.clients {
		if b.ended == nil {
			continue
		}
		select {
		case <-b.ended:
		case <-time.After(2 * grantBound):
			b.cancel()
			<-b.ended
		}
		c.collect(b)
	}
	switch c.subject.begins() {
	case chaos.Awaits:
		return last, nil
	case chaos.Locks:
		return c.lastByHand(ctx)
	}
	for began := time.Now(); ; {
		last = c.bed.buy(ctx, 1, c.subject, url.Values{"wait": {grantBound.String()}})
		last.Client = chaos.Clients + 1
		c.ops = append(c.ops, last)
		// A connection that a fault has broken may fail once more. Then nothing was sold.
		again := last.Reason == string(api.Unavailable) && time.Since(began) < grantBound
		if !again || sleep(ctx, 100*time.Millisecond) != nil {
			return last, ctx.Err()
		}
	}
}
