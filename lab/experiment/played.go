package experiment

import (
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
	hands          []*byHand         // of a primitive
	delayed        map[string]bool   // owners of requests that were stopped before their grant
	stops          bool              // the holder is to stop
	stopped        string            // the owner of the holder's request, if it has stopped, or was not to
	never          map[string]string // the steps at which clients never stopped, by the clients
	stock          check.Conservation
	struck, healed time.Duration // since the start of the recording: the first fault, or else the contender's request; the end of all faults
	missed         error         // why no fault of the plan has landed
	nth            int           // of a plan for each n
	command        string        // the name of the command that was held back, or whose answer was lost
}

// played returns what was recorded, in the order of the clients. A is the holder. The contender is B, or else D.
func (r *run) played(plan chaos.Plan) *played {
	first := slices.IndexFunc(plan, func(m chaos.Move) bool { return m.Client == 0 && m.Do == chaos.Sells })
	p := &played{
		Subject: r.subject, moves: r.done, skipped: r.skipped, coverage: r.coverage, last: r.last, hands: r.hands, delayed: r.delayed,
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
	if p.primitive != nil {
		_, p.rec.Events = p.acts()
	}
	p.rec.Events = slices.DeleteFunc(p.rec.Events, func(e history.Event) bool { return e.At < r.began })
	if on := r.onCommand(); r.nth > 0 && on != nil && !r.bed.idle {
		p.command = on.fault.Command()
	}
	return p
}
