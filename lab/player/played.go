package player

import (
	"errors"
	"slices"
	"time"

	"oversell/lab/chaos"
	"oversell/lab/check"
	"oversell/lab/history"
)

// These are the roles of the requests of a plan. Client A is the holder, B or else D the contender, and C the observer.
const (
	Holder = iota
	Contender
	Observer
	Successor // the next request of a role that has one already, such as a sale after the holder's
	Roles
)

// Played is what was recorded of one strategy in a plan that was carried out. The judge reads nothing else.
type Played struct {
	Subject
	Moves, Skipped chaos.Plan // the moves that were carried out, and those that were impossible
	Coverage       chaos.Coverage
	Recording      history.Recording // the requests are in the order of the clients
	Ops            [Roles]history.Op // the first request of each role
	Last           *history.Op       // the request of one more client, after the end of all faults; nil without one
	Delayed        map[string]bool   // owners of requests that were stopped before their grant
	Stops          bool              // the holder is to stop
	Stopped        string            // the owner of the holder's request, if it has stopped at a step, or had none to stop at
	Never          map[string]string // by client: the step at which its request was to stop, and never did
	Struck, Healed time.Duration     // the first fault (or else the contender's request), and the end of all faults
	Missed         error             // why no fault of the plan has landed
	Nth            int               // the n of a plan for each n (see chaos.Each); otherwise 0
	Command        Command
	Permits        int            // of a primitive; 0 for a sale
	Acts           []check.LockOp // the operations on a primitive, for check.LockModel
	OpenedEarly    bool           // a latch, before it was counted down
}

// Command is the command of the lock that a plan for each n holds back, or whose answer the plan loses.
type Command struct {
	Name   string
	Landed bool // it was sent
	Others bool // the lock has sent another command
	Struck bool // the fault that waits for the command was injected
}

// Played returns what was recorded of each strategy.
func (p *Player) Played(plan chaos.Plan) (all []*Played) {
	for _, r := range p.runs {
		all = append(all, r.played(plan))
	}
	return all
}

// played returns what was recorded of a run, in the order of the clients. A is the holder. The contender is B, or else D.
func (r *run) played(plan chaos.Plan) *Played {
	first := slices.IndexFunc(plan, func(m chaos.Move) bool { return m.Client == 0 && m.Do == chaos.Sells })
	p := &Played{
		Subject: r.subject, Moves: r.done, Skipped: r.skipped, Coverage: r.coverage, Last: r.last, Delayed: r.delayed,
		Stops: first >= 0 && plan[first].At != "", Healed: r.healed, Missed: r.missed(plan), Nth: r.Nth,
		Never: map[string]string{},
	}
	for _, b := range r.clients {
		r.collect(b)
		if b.at != "" {
			p.Never[chaos.Name(b.client)] = string(b.at)
		}
	}
	slices.SortStableFunc(r.ops, func(a, b history.Op) int { return a.Client - b.Client })
	parts, taken := [chaos.Clients]int{Holder, Contender, Observer, Contender}, map[int]bool{}
	for _, op := range r.ops {
		if op.Client > chaos.Clients {
			continue
		}
		part := parts[op.Client-1]
		if taken[part] {
			part = Successor
		}
		if !taken[part] {
			p.Ops[part], taken[part] = op, true
		}
	}
	p.Recording = r.bed.Recording(p.Subject, r.Pieces, r.ops)
	p.Recording.Spans = r.spans
	if p.Struck = r.struckAt; p.Struck == 0 { // no fault
		p.Struck = p.Ops[Contender].Call
	}
	if a := r.clients[0]; a.halted || !p.Stops {
		p.Stopped = a.first
		if i := slices.IndexFunc(p.Recording.Events, func(e history.Event) bool { return e.Replica == ReplicaName(a.on) }); i >= 0 && p.Stopped == "" {
			p.Stopped = p.Recording.Events[i].Owner
		}
	}
	if r.subject.Primitive != nil {
		p.Permits, p.OpenedEarly = r.subject.Primitive.Permits, r.openedEarly(p.Recording)
		p.Acts, p.Recording.Events = r.acts(p.Recording)
	}
	p.Recording.Events = slices.DeleteFunc(p.Recording.Events, func(e history.Event) bool { return e.At < r.began })
	p.Command = r.onCommand()
	return p
}

func (p *Player) onCommand() (c Command) {
	i := slices.IndexFunc(p.injected, func(s *struck) bool { return s.Do == chaos.Holds || s.Do == chaos.Loses })
	if i < 0 || p.Nth == 0 || p.bed.Idle {
		return c
	}
	on := p.injected[i]
	return Command{on.fault.Command(), on.landed, on.fault.Others(), true}
}

// missed returns an error if the plan has faults, and none has had its effect.
func (p *Player) missed(plan chaos.Plan) (err error) {
	if !slices.ContainsFunc(plan, func(m chaos.Move) bool { return m.Do.IsFault() && !m.Do.Prepares() }) {
		return nil
	}
	for _, s := range p.injected {
		if s.landed {
			return nil
		}
		err = errors.Join(err, s.missed)
	}
	if err == nil {
		err = errors.New("no fault of the plan can strike this lock")
	}
	return err
}
