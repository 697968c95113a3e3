package player

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"oversell/api"
	"oversell/lab/chaos"
	"oversell/lab/check"
	"oversell/lab/history"
)

// Primitive is a lock for several holders. Clients lock and unlock it by hand: in two requests to one replica.
type Primitive struct {
	one, many     string // the routes that lock: for one permit or to read; for two permits or to write
	free, freeAll string // the routes that unlock after one, and after many
	Permits, more int    // the permits in all, and the permits that many takes
	Latch         int    // the count to which a latch is set; 0 for other primitives
}

func primitives() map[string]Primitive {
	return map[string]Primitive{
		"semaphore":  {"semaphore/acquire?qty=1&", "semaphore/acquire?qty=2&", "semaphore/release?", "semaphore/release?", 3, 2, 0},
		"read-write": {"read/lock?", "write/lock?", "read/unlock?", "write/unlock?", check.AllPermits, check.AllPermits, 0},
		"latch":      {"latch?count=2&", "", "countdown?count=2&", "", check.AllPermits, 0, 2},
	}
}

// Primitives returns the names of the primitives in random plans, such as semaphore:redis.
func Primitives() (names []string) {
	for name, p := range primitives() {
		if names = append(names, name+":redis"); p.Latch == 0 {
			names = append(names, name+":zk")
		}
	}
	slices.Sort(names)
	return names
}

// PrimitiveSubject returns a primitive as a subject of random plans. Its card claims that it survives all of them.
func PrimitiveSubject(name string) Subject {
	kind, backend, _ := strings.Cut(name, ":")
	c := api.Card{ID: name, Family: handFamily, Scope: api.ScopeShared, Safe: true, Locker: true, Lease: true, Renews: true, Backends: []string{backend}}
	if backend == "zk" {
		c.Backends = []string{"zookeeper"}
	}
	p := primitives()[kind]
	return Subject{Card: c, Primitive: &p}
}

// handFamily is the family on the cards of primitives. Their requests write nothing to the database.
const handFamily = "primitive"

// lockName returns the name by which the servers know the lock. That of a primitive has no colon.
func (s Subject) lockName() string {
	if s.Primitive != nil {
		return strings.ReplaceAll(s.Key(), ":", "-")
	}
	return s.Key()
}

// Begins returns the first move of each client: Sells, or for a primitive Locks or Awaits.
func (s Subject) Begins() chaos.Verb {
	switch {
	case s.Primitive == nil:
		return chaos.Sells
	case s.Primitive.Latch > 0:
		return chaos.Awaits
	}
	return chaos.Locks
}

// byHand is a request to a primitive, such as one that locks or unlocks.
type byHand struct {
	chaos.Move // the move that sent the request; of an unlocking, the move that locked
	on         int
	act        check.LockOp
	failed     error
	answer     struct {
		Set  bool // it has set the latch
		Left int  // the count of the latch
	}
}

// holds reports whether the request has locked. Its lease or a fault may have ended the lock since then. A latch has no
// holder.
func (h *byHand) holds() bool {
	return h != nil && h.Do == chaos.Locks && h.act.Act == check.Enter && h.failed == nil
}

// lock lets a client lock, each time as a new owner: so no request re-enters a lock that may have ended.
func (r *run) lock(ctx context.Context, b *buyer, m chaos.Move) error {
	p, query := r.subject.Primitive, url.Values{"wait": {GrantBound.String()}}
	h := &byHand{Move: m, on: b.on, act: check.LockOp{Act: check.Enter, Owner: "owner-" + strconv.Itoa(len(r.hands)), Permits: 1}}
	route := p.one
	if m.Many {
		route, h.act.Permits = p.many, p.more
	}
	if m.Do == chaos.Awaits { // the latch may open at the end of the plan only
		query.Set("wait", "1m")
	}
	if m.Try {
		query.Set("wait", "0s")
	}
	if m.Leased {
		query.Set("lease", Lease.String())
	}
	return r.ask(ctx, b, h, route, query)
}

// unlock lets a client unlock what it locked last, even if it has unlocked that.
func (r *run) unlock(ctx context.Context, b *buyer) error {
	h := *b.hand
	h.act.Act, h.failed = check.Leave, nil
	route := r.subject.Primitive.free
	if h.Many {
		route = r.subject.Primitive.freeAll
	}
	return r.ask(ctx, b, &h, route, url.Values{})
}

// ask sends a request, and waits until it has ended, for the time settled at most.
func (r *run) ask(ctx context.Context, b *buyer, h *byHand, route string, query url.Values) error {
	_, backend, _ := strings.Cut(r.subject.Card.ID, ":")
	query.Set("backend", backend)
	query.Set("name", r.subject.lockName())
	if r.subject.Primitive.Latch == 0 {
		query.Set("owner", h.act.Owner)
	}
	asking, cancel := context.WithCancel(context.WithoutCancel(ctx))
	b.hand, b.cancel, b.ended = h, cancel, make(chan struct{})
	r.hands = append(r.hands, h)
	replica := r.bed.Replica(b.on)
	go func(ended chan struct{}) {
		defer close(ended)
		defer cancel()
		h.act.Call = r.bed.Since()
		h.failed = replica.Call(asking, http.MethodPost, "/test/"+route+query.Encode(), nil, &h.answer)
		h.act.Return = r.bed.Since()
	}(b.ended)
	select {
	case <-b.ended:
	case <-time.After(settled):
	case <-ctx.Done():
	}
	return ctx.Err()
}

// handPhase returns the phase of a client's request to a primitive.
func (b *buyer) handPhase() chaos.Phase {
	switch {
	case b.running() && b.hand.act.Act == check.Enter:
		return chaos.Wait
	case b.running():
		return chaos.Release
	case b.hand.holds():
		return chaos.Critical
	}
	return chaos.NoPhase
}

// lastByHand unlocks all that is held. Then one more client locks.
func (r *run) lastByHand(ctx context.Context) (op history.Op, err error) {
	for _, b := range r.clients {
		if b.hand.holds() {
			err = errors.Join(err, r.unlock(ctx, b))
			<-b.ended
		}
	}
	last := &buyer{on: 1}
	err = errors.Join(err, r.lock(ctx, last, chaos.Move{Do: chaos.Locks, Many: true}))
	<-last.ended
	if op.Outcome = history.OK; last.hand.failed != nil {
		op.Outcome = history.Refused
	}
	return op, errors.Join(err, ctx.Err())
}

// event returns a step of a request to a primitive as an event of the timeline.
func (r *run) event(h *byHand, s api.Step, at time.Duration) history.Event {
	return history.Event{Replica: ReplicaName(h.on), Owner: h.act.Owner, Strategy: r.subject.Card.ID, Key: r.subject.Key(), Step: s, At: at}
}

// acts returns the operations on a primitive for check.LockModel, and their events for the timeline. An unlocking without
// an answer may have taken effect at any time. A lease or a fault may have ended what was locked.
func (r *run) acts(rec history.Recording) (acts []check.LockOp, events []history.Event) {
	if r.subject.Primitive.Latch > 0 {
		return r.latchActs(rec)
	}
	released := map[string]time.Duration{}
	for _, h := range r.hands {
		act := h.act
		switch {
		case act.Act == check.Leave && h.failed != nil:
			act.Return = check.Open
			acts = append(acts, act)
		case act.Act == check.Leave:
			released[act.Owner] = act.Return
			acts = append(acts, act)
			events = append(events, r.event(h, api.Released, act.Return))
		case h.failed == nil:
			acts = append(acts, act)
			events = append(events, r.event(h, api.Asked, act.Call), r.event(h, api.Granted, act.Return))
		}
	}
	for _, h := range r.hands {
		if !h.holds() {
			continue
		}
		own, until := rec, check.Open
		if at, ok := released[h.act.Owner]; ok {
			until = at
		}
		if h.Leased { // the replica frees the lock a little before the end of the lease: clocks differ in speed
			own.Renews, own.Lease = false, own.Lease-own.Lease/50
		}
		if r.subject.Card.Uses("zookeeper") { // the replica frees the lock as soon as its connection breaks
			own.Lease = 0
		}
		if end := check.MayEnd(own, h.act, ReplicaName(h.on), until); end < until {
			acts = append(acts, check.LockOp{Act: check.Expire, Owner: h.act.Owner, Call: max(end, h.act.Call), Return: check.Open})
		}
	}
	slices.SortStableFunc(events, func(a, b history.Event) int { return int(a.At - b.At) })
	return acts, events
}
