package experiment

import (
	"errors"
	"slices"
	"time"

	"oversell/lab/chaos"
	"oversell/lab/check"
	"oversell/lab/history"
)

// These are the roles of the requests of a hazard. drawReplicas chooses the replica of each role.
const (
	holder = iota
	contender
	observer
	successor // after the holder's sale
	roles
)

// played is what was recorded of one strategy in a plan that was carried out. The judge reads nothing else.
type played struct {
	Subject
	moves, skipped chaos.Plan // those that were possible, and the others
	coverage       chaos.Coverage
	rec            history.Recording // the requests are in the order of the clients
	ops            [roles]history.Op // the first ones of each role
	last           *history.Op       // of one more client, when all faults had ended; nil if none was to buy
	delayed        map[string]bool   // owners of requests that were stopped before their grant
	stops          bool              // the holder is to stop
	stopped        string            // the owner of the holder's request, if it has stopped, or was not to
	never          map[string]string // the steps at which clients never stopped, by the clients
	stock          check.Conservation
	struck, healed time.Duration // since the start of the recording: the first fault, or else the contender's request; the end of all faults
	missed         error         // why no fault of the plan has landed
	nth            int           // of a plan for each n
	command        command
	permits        int            // of a primitive; 0 for a sale
	acts           []check.LockOp // on a primitive
	openedEarly    bool           // a latch, before it was counted down
}

// command is the one that a plan for each n holds back, or whose answer it loses.
type command struct {
	name   string
	landed bool // it was sent
	others bool // the lock has sent another command
	struck bool // a fault waits for it, or has waited
}

// played returns what was recorded, in the order of the clients. A is the holder. The contender is B, or else D.
func (r *run) played(plan chaos.Plan) *played {
	first := slices.IndexFunc(plan, func(m chaos.Move) bool { return m.Client == 0 && m.Do == chaos.Sells })
	p := &played{
		Subject: r.subject, moves: r.done, skipped: r.skipped, coverage: r.coverage, last: r.last, delayed: r.delayed,
		stops: first >= 0 && plan[first].At != "", healed: r.healed, missed: r.missed(plan), nth: r.nth,
		never: map[string]string{},
	}
	for _, b := range r.clients {
		r.collect(b)
		if b.at != "" {
			p.never[chaos.Name(b.client)] = string(b.at)
		}
	}
	slices.SortStableFunc(r.ops, func(a, b history.Op) int { return a.Client - b.Client })
	parts, taken := [chaos.Clients]int{holder, contender, observer, contender}, map[int]bool{}
	for _, op := range r.ops {
		if op.Client > chaos.Clients {
			continue
		}
		part := parts[op.Client-1]
		if taken[part] {
			part = successor
		}
		if !taken[part] {
			p.ops[part], taken[part] = op, true
		}
	}
	p.rec = Leased(p.Card, history.Recording{Start: r.bed.rec.start, Stock: r.pieces, Ops: r.ops, Events: r.bed.rec.eventsOf(p.key()), Spans: r.spans})
	if p.struck = r.struckAt; p.struck == 0 { // no fault
		p.struck = p.ops[contender].Call
	}
	if a := r.clients[0]; a.halted || !p.stops {
		p.stopped = a.first
		if i := slices.IndexFunc(p.rec.Events, func(e history.Event) bool { return e.Replica == name(a.on) }); i >= 0 && p.stopped == "" {
			p.stopped = p.rec.Events[i].Owner
		}
	}
	if r.subject.primitive != nil {
		p.permits, p.openedEarly = r.subject.primitive.permits, r.openedEarly(p.rec)
		p.acts, p.rec.Events = r.acts(p.rec)
	}
	p.rec.Events = slices.DeleteFunc(p.rec.Events, func(e history.Event) bool { return e.At < r.began })
	p.command = r.onCommand()
	return p
}

func (p *player) onCommand() (c command) {
	i := slices.IndexFunc(p.injected, func(s *struck) bool { return s.Do == chaos.Holds || s.Do == chaos.Loses })
	if i < 0 || p.nth == 0 || p.bed.idle {
		return c
	}
	on := p.injected[i]
	return command{on.fault.Command(), on.landed, on.fault.Others(), true}
}

// missed returns an error if the plan has faults, and none has had its effect.
func (p *player) missed(plan chaos.Plan) (err error) {
	if !slices.ContainsFunc(plan, func(m chaos.Move) bool {
		return m.Do.IsFault() && m.Do != chaos.Boots && m.Do != chaos.Renews && m.Do != chaos.Lags && m.Do != chaos.RowLags
	}) {
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
