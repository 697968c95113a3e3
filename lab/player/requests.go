package player

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"oversell/api"
	"oversell/lab/chaos"
	"oversell/lab/history"
	"oversell/lab/rig"
)

const (
	// settled is the time without a new step after which a request counts as waiting, for the lock or for the end of a
	// fault. A request that can go on takes its next step much earlier.
	settled = 400 * time.Millisecond
	// settledLooks is the minimum number of looks at the request in that time: on a busy machine, each look takes longer, too.
	settledLooks = 30
	// patience replaces settled for a request that only a busy machine can delay.
	patience = 10 * time.Second
)

func (b *buyer) running() bool { return b.ended != nil && !isClosed(b.ended) }

func isClosed(ended <-chan struct{}) bool {
	select {
	case <-ended:
		return true
	default:
		return false
	}
}

// sell lets a client begin a sale, and waits until the request has settled.
func (r *run) sell(ctx context.Context, b *buyer, m chaos.Move) error {
	r.collect(b)
	if len(r.runs) == 1 && b.client == chaos.Replica(b.client) { // a request in the same process may have stopped
		if err := r.bed.Replica(b.on).ResumeAll(ctx); err != nil { // an earlier request has not reached its step
			return err
		}
	}
	if at := m.At; at != "" {
		if b.client == 0 && r.StepOf != nil {
			at = r.StepOf(r.subject.Card, at)
		}
		if err := r.bed.StopNext(ctx, b.on, r.subject, at); err != nil {
			return err
		}
	}
	b.at = m.At
	params := Wait(r.waits(m))
	if m.Names != "" && r.subject.Card.SeveralLocks {
		params.Set("also", strings.Replace(m.Names, " then ", ",", 1))
	}
	if m.Nested {
		params.Set("nested", "true")
	}
	if b.works = m.Works != (chaos.Amount{}); b.works {
		params.Set("hold", r.lasts(m.Works, 0).String())
	}
	asking, cancel := context.WithCancel(context.WithoutCancel(ctx))
	b.owner, b.cancel, b.ended = "", cancel, make(chan struct{})
	go func(ended chan struct{}) {
		defer close(ended)
		defer cancel()
		b.op = r.buy(asking, b, params)
		b.op.Client = b.client + 1
	}(b.ended)
	return r.settle(ctx, b)
}

// buy sends the request of a client. In a topology of Redis, the program of a lock on trial may take a while to find a
// new master. An error in that time says nothing about its lock, so buy tries again, for TopologyWait at most.
func (r *run) buy(ctx context.Context, b *buyer, params url.Values) history.Op {
	patient := r.subject.Card.OnTrial() && b.client != 2 && r.bed.Rig.Config().RedisTopology != rig.OneRedis
	for began := time.Now(); ; {
		op := r.bed.Buy(ctx, b.on, r.subject, params)
		if !patient || op.Reason != history.Unavailable || time.Since(began) >= TopologyWait || sleep(ctx, TopologyWait/50) != nil {
			return op
		}
	}
}

// collect keeps the answer of a request that has ended.
func (r *run) collect(b *buyer) {
	if b.ended != nil && isClosed(b.ended) && b.hand == nil {
		r.ops = append(r.ops, b.op)
		b.ended = nil
	}
}

func (r *run) resume(ctx context.Context, b *buyer, at api.Step) error {
	if at != "" {
		if err := r.bed.StopNext(ctx, b.on, r.subject, at); err != nil {
			return err
		}
	}
	b.stopped, b.at = "", at
	if err := r.bed.Replica(b.on).Resume(ctx, b.owner); err != nil {
		return err
	}
	return r.settle(ctx, b)
}

// end waits until the request has its answer, or has stopped at a step.
func (r *run) end(ctx context.Context, b *buyer) error {
	for began := time.Now(); b.running() && b.stopped == ""; {
		if _, err := r.find(ctx, b, began); err != nil {
			return err
		}
		if err := sleep(ctx, 10*time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}

// settle waits until the request has stopped or ended, or takes no step any more.
func (r *run) settle(ctx context.Context, b *buyer) error {
	began, steps, last := time.Now(), 0, time.Now()
	for looks := 0; looks < settledLooks || time.Since(last) < r.limit(ctx, b); looks++ {
		now, err := r.find(ctx, b, began)
		if err != nil {
			return err
		}
		if b.stopped != "" || !b.running() {
			return nil
		}
		if now > steps {
			steps, last, looks = now, time.Now(), 0
		}
		if err := sleep(ctx, 10*time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}

// limit returns the time without a new step after which a request counts as waiting. The time is long (patience) if
// nothing can delay the request: no fault was injected, the request does no work, and all other requests have ended or
// released the lock.
func (r *run) limit(ctx context.Context, b *buyer) time.Duration {
	if i := r.index(chaos.Holds, b.client); i >= 0 && len(r.runs) == 1 && r.Nth > 0 && r.lasting[i].fault.Landed(ctx) != nil {
		return Lease/3 + time.Duration(r.subject.Card.PollMS)*time.Millisecond // it may still send the command that is to be held back
	}
	if b.owner != "" && r.phase(b) == chaos.Wait {
		return settled
	}
	r.changing.Lock()
	defer r.changing.Unlock()
	if b.owner == "" && r.linksFree(b.client) { // the request has taken no step yet
		return patience
	}
	others := slices.ContainsFunc(r.clients[:], func(other *buyer) bool {
		return other != b && other.stopped != api.Released && (other.running() || other.stopped != "")
	})
	if others || b.works || len(r.injected) > 0 {
		return settled
	}
	return patience
}

// find reads the state of a client's request: its owner, and the failpoint at which it is stopped. It returns the number
// of steps that the request has taken. The list of stopped requests is one that was requested after since.
func (r *run) find(ctx context.Context, b *buyer, since time.Time) (steps int, err error) {
	ended := !b.running() // before the recording is read
	mine := slices.DeleteFunc(r.bed.rec.eventsOf(r.subject.Key()), func(e history.Event) bool {
		return e.Replica != ReplicaName(b.on) || r.seen[e.Owner] && e.Owner != b.owner
	})
	if len(mine) > 0 {
		b.owner = mine[0].Owner
		b.first = cmp.Or(b.first, b.owner)
		r.seen[b.owner] = true
	}
	if ended {
		return len(mine), nil
	}
	paused, err := r.paused(ctx, b.on, since)
	own := func(p api.Paused) bool {
		return p.Key == r.subject.Key() && (p.Owner == b.owner || !r.seen[p.Owner])
	}
	if i := slices.IndexFunc(paused, own); i >= 0 {
		b.owner, b.stopped = paused[i].Owner, paused[i].Step
		b.first, b.halted, b.at = cmp.Or(b.first, b.owner), true, ""
		r.seen[b.owner] = true
		r.delayed[b.owner] = r.delayed[b.owner] || chaos.PhaseAfter(b.stopped) == chaos.Wait
	}
	return len(mine), err
}

// paused returns the requests that are stopped on a replica. All strategies share one list for a moment: else each
// strategy would send a request for it every few milliseconds.
func (p *Player) paused(ctx context.Context, on int, since time.Time) ([]api.Paused, error) {
	const fresh = 10 * time.Millisecond
	l := &p.looks[on]
	l.mu.Lock()
	defer l.mu.Unlock()
	if time.Since(l.began) < fresh && l.began.After(since) {
		return l.list, nil
	}
	began := time.Now()
	list, err := p.bed.Replica(on).Paused(ctx)
	if err != nil {
		return nil, err
	}
	l.began, l.list = began, list
	return list, nil
}

// phase returns the phase of a client's request, such as chaos.Wait or chaos.Critical.
func (r *run) phase(b *buyer) chaos.Phase {
	if r.subject.Primitive != nil {
		return b.handPhase()
	}
	if b.stopped != "" { // the recording may lag behind
		return chaos.PhaseAfter(b.stopped)
	}
	if !b.running() {
		return chaos.NoPhase
	}
	last := api.Step("")
	for _, e := range r.bed.rec.eventsOf(r.subject.Key()) {
		if e.Owner == b.owner && e.Replica == ReplicaName(b.on) {
			last = e.Step
		}
	}
	return chaos.PhaseAfter(last)
}

// reads lets a client ask for more pieces than the stock has. The result leaves this request out: see the field Plans of
// experiment.Experiment.
func (r *run) reads(ctx context.Context, b *buyer) error {
	var op history.Op // a client of a cluster on trial may need several tries: some nodes of it do not answer
	if err := Eventually(ctx, "an answer", func() bool {
		op = r.bed.Buy(ctx, b.on, r.subject, url.Values{"qty": {strconv.Itoa(r.Pieces + 1)}})
		return op.Reason == history.SoldOut
	}); err != nil {
		return fmt.Errorf("%s: more pieces than there are: %s, want %s: %w", r.subject.Name(), op.Reason, history.SoldOut, err)
	}
	r.changing.Lock()
	defer r.changing.Unlock()
	r.began = max(r.began, r.bed.Since())
	return nil
}

// waits returns how long a sale of a plan waits for the lock.
func (r *run) waits(m chaos.Move) time.Duration {
	switch c := r.subject.Card; {
	case m.Try:
		return 0
	case m.Early && c.Locker && c.Lease && !c.Renews:
		return Lease / 2
	}
	return r.lasts(m.For, GrantBound)
}
