package player

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"oversell/api"
	"oversell/lab/chaos"
	"oversell/lab/fault"
	"oversell/lab/history"
	"oversell/lab/rig"
)

// Player carries out a plan on several strategies at the same time. A fault strikes all of them at once. Between two faults,
// the requests of each strategy go at their own pace.
type Player struct {
	Pieces int                               // the stock of each product
	Nth    int                               // the number n of a plan for each n; otherwise 0
	StepOf func(api.Card, api.Step) api.Step // the step at which A stops, in place of the plan's step; nil means that step

	bed      *Testbed
	runs     []*run
	on       [chaos.Clients]int  // the number of each client's replica
	gone     map[int]bool        // the replicas whose process is frozen or dead
	touched  [chaos.Clients]bool // by client: a fault waits or waited for one of its commands, so its links get no other fault
	lasting  []*struck
	injected []*struck // all injected faults, in their order
	spans    []history.Span
	coverage chaos.Coverage
	lagging  *rig.Link         // the link on which the replica of Redis gets writes: cut before a fail-over; otherwise nil
	places   places            // the places in queues, before the request that loses its session
	masters  *fault.Masters    // of Redis with Sentinels or in a cluster; may be nil
	moving   *fault.Resharding // moves the lock's slot to another master; nil before that
	sales    bool              // a sale has begun
	catchUp  fault.Heal        // ends the move Lags in a topology of Redis, or with several databases; otherwise nil
	held     int               // the index in spans of the held replication
	behind   fault.Heal        // restores the links that RowLags cut, on which sales in Redis reach MySQL's row
	began    time.Duration     // since the start of the recording: results leave out earlier steps
	struckAt time.Duration     // when the first fault had been injected; 0 without one
	healed   time.Duration     // since the start of the recording, when all faults had ended
	looks    [3]look           // by replica: the newest list of its stopped requests
	changing sync.Mutex        // protects lasting, coverage and what has landed
}

// run is one strategy in a plan that is carried out.
type run struct {
	*Player
	subject Subject
	clients [chaos.Clients]*buyer
	seen    map[string]bool // owners of requests that have begun
	delayed map[string]bool // owners of requests that were stopped before their grant
	ops     []history.Op
	last    *history.Op // the request of one more client, after the end of all faults
	done    chaos.Plan  // the moves that were possible
	skipped chaos.Plan  // the moves that were impossible
	hands   []*byHand   // all requests to a primitive
}

// buyer is a client, whose requests go to one replica.
type buyer struct {
	client  int      // from 0
	on      int      // the number of its replica
	owner   string   // the owner of its newest request; empty until the request has taken a step
	stopped api.Step // the step at which its request has stopped, or ""
	first   string   // the owner of its first request
	at      api.Step // the step at which its request is to stop, until it does
	works   bool     // its request works for a while
	halted  bool     // a request of it has stopped at a step
	cancel  context.CancelFunc
	ended   chan struct{} // nil before its first request
	op      history.Op
	hand    *byHand // its last request to a primitive
}

// look is the newest list of the requests that are stopped on a replica.
type look struct {
	mu    sync.Mutex
	began time.Time
	list  []api.Paused
}

// Player returns a player for strategies that have their products. The nth client sends its requests to the replica on[n].
func (bed *Testbed) Player(on [chaos.Clients]int, subjects ...Subject) *Player {
	p := &Player{bed: bed, on: on, gone: map[int]bool{}, behind: noHeal, coverage: chaos.Coverage{}}
	for _, s := range subjects {
		r := &run{Player: p, subject: s, seen: map[string]bool{}, delayed: map[string]bool{}}
		for i := range r.clients {
			r.clients[i] = &buyer{client: i, on: on[i]}
		}
		p.runs = append(p.runs, r)
	}
	return p
}

// Play carries out a plan. A move that is impossible, such as to resume a request that has ended, is skipped, so a plan can
// be shortened at any place.
func (p *Player) Play(ctx context.Context, plan chaos.Plan) (err error) {
	if plan.Has(chaos.FailsOver) && !plan.Has(chaos.Lags) {
		if p.lagging, err = p.bed.cutReplication(); err != nil {
			return err
		}
	}
	for at := 0; at < len(plan) && err == nil; {
		next := at
		for next < len(plan) && isRequest(plan[next].Do) && (next == at || !losesSession(plan, next) && (p.sales || plan[next].Do != chaos.Sells)) {
			next++
		}
		if !p.sales && plan[at].Do == chaos.Sells {
			if err := p.beforeSales(ctx, plan); err != nil {
				return err
			}
		}
		if losesSession(plan, at) {
			if p.places, err = p.bed.places(ctx); err != nil {
				return err
			}
		}
		if next > at {
			err = p.requests(ctx, plan[at:next])
			at = next
			continue
		}
		var done bool
		done, err = p.strikeOrHeal(ctx, plan[at])
		for _, r := range p.runs {
			r.note(plan[at], done)
		}
		at++
	}
	return err
}

// losesSession reports whether the move begins a sale whose client loses its session later in the plan. Such a sale
// begins a new batch of moves: the places in queues are recorded before it.
func losesSession(plan chaos.Plan, at int) bool {
	return plan[at].Do == chaos.Sells && plan[at:].Has(chaos.LosesSession) &&
		slices.ContainsFunc(plan[at:], func(m chaos.Move) bool { return m.Do == chaos.LosesSession && m.Client == plan[at].Client })
}

// note keeps a move that was carried out, or skipped.
func (r *run) note(m chaos.Move, done bool) {
	if done {
		r.done = append(r.done, m)
	} else {
		r.skipped = append(r.skipped, m)
	}
}

// isRequest reports whether a move concerns only the requests of its client, and injects no fault.
func isRequest(v chaos.Verb) bool {
	return slices.Contains([]chaos.Verb{chaos.Sells, chaos.Resumes, chaos.Ends, chaos.Stops, chaos.Reads, chaos.Cancels, chaos.Locks, chaos.Unlocks, chaos.Awaits, chaos.Counts}, v)
}

// requests carries out moves that concern only requests: for all strategies at the same time, for each strategy in the
// order of the plan.
func (p *Player) requests(ctx context.Context, moves chaos.Plan) error {
	var all errgroup.Group
	for _, r := range p.runs {
		all.Go(func() error {
			for _, m := range moves {
				done, err := r.do(ctx, m)
				if len(p.runs) == 1 { // else other requests change while they are observed
					p.observeAll(ctx)
				}
				if err != nil {
					return err
				}
				r.note(m, done)
			}
			return nil
		})
	}
	defer p.observeAll(ctx)
	return all.Wait()
}

// strikeOrHeal carries out a move that concerns all strategies.
func (p *Player) strikeOrHeal(ctx context.Context, m chaos.Move) (done bool, err error) {
	defer p.observeAll(ctx)
	switch m.Do {
	case chaos.Passes:
		if m.IfRenews && !p.runs[0].subject.Card.Renews { // see together
			return false, nil
		}
		return true, sleep(ctx, p.lasts(m.For, 4*Lease/3))
	case chaos.Renews:
		return p.renew(ctx, m)
	case chaos.LosesSession:
		return true, p.expire(ctx, m.Client)
	case chaos.Boots:
		return true, p.bed.restart(ctx, ReplicaName(p.on[m.Client]))
	case chaos.Lags:
		return true, p.lag(ctx)
	case chaos.SlotMoves:
		return true, p.moveSlot(ctx, m.Nth)
	case chaos.RowLags:
		return p.cutRow(ctx)
	case chaos.Heals:
		return p.heal(ctx, m)
	}
	return p.strike(ctx, m)
}

// lasts returns an amount of the plan as a duration. For the zero Amount, it returns none.
func (*Player) lasts(a chaos.Amount, none time.Duration) time.Duration {
	switch {
	case a == chaos.Amount{}:
		return none
	case a.Leases:
		return time.Duration(a.N * float64(Lease))
	}
	return time.Duration(a.N * float64(time.Second))
}

// do carries out one move of a client's request.
func (r *run) do(ctx context.Context, m chaos.Move) (done bool, err error) {
	b, begins := r.clients[m.Client], r.subject.Begins()
	gone := r.gone[b.on]
	switch m.Do {
	case chaos.Sells:
		if m.Again {
			r.collect(b)
			i := slices.IndexFunc(r.ops, func(op history.Op) bool { return op.Client == b.client+1 && op.Outcome == history.Refused })
			if i < 0 || b.running() {
				return false, nil
			}
			if r.catchUp == nil { // else the databases are to differ
				if err := r.bed.Rig.AwaitEven(ctx); err != nil {
					return false, err
				}
			}
		}
		if done = begins == m.Do && !b.running() && b.stopped == "" && !gone; done {
			err = r.sell(ctx, b, m)
		}
	case chaos.Awaits, chaos.Locks:
		if done = begins == m.Do && !b.running() && !gone && !b.hand.holds(); done {
			err = r.lock(ctx, b, m)
		}
	case chaos.Counts:
		if done = begins == chaos.Awaits && !b.running() && !gone; done {
			if err = r.count(ctx, b); err == nil && !b.running() && b.hand.answer.Left == 0 {
				_ = r.awaitWoken(ctx, settled) // else their next moves would be impossible
			}
		}
	case chaos.Unlocks:
		if done = begins == chaos.Locks && b.hand != nil && !b.running() && !gone; done {
			err = r.unlock(ctx, b)
		}
	case chaos.Resumes:
		if done = b.stopped != "" && !gone; done {
			err = r.resume(ctx, b, m.At)
		}
	case chaos.Reads:
		if done = !b.running() && !gone; done {
			err = r.reads(ctx, b)
		}
	case chaos.Ends, chaos.Stops:
		if done = b.ended != nil && !gone; done {
			err = r.end(ctx, b)
		}
	case chaos.Cancels:
		if done = b.running(); done {
			b.cancel()
			<-b.ended
		}
	}
	return done, err
}

// Finish heals all faults, lets all requests go on, and waits for their answers.
func (p *Player) Finish(ctx context.Context) (err error) {
	for len(p.lasting) > 0 {
		err = errors.Join(err, p.endFault(ctx, p.lasting[len(p.lasting)-1]))
	}
	for client, on := range p.on {
		if p.touched[client] {
			err = errors.Join(err, restore(append(p.links(ReplicaName(on), chaos.Move{Do: chaos.Holds}), p.links(ReplicaName(on), chaos.Move{Do: chaos.HoldsRow})...))(ctx)) // else a gate would stay
		}
		if client != chaos.Replica(client) { // its replica is that of another client
			continue
		}
		replica := p.bed.Replica(on)
		ready := Eventually(ctx, ReplicaName(on)+" is ready", func() bool { return replica.Ready(ctx) == nil })
		err = errors.Join(err, ready, replica.ResumeAll(ctx))
	}
	if p.moving != nil {
		err = errors.Join(err, p.moving.Finish(ctx))
	}
	if p.lagging != nil { // the plan has not reached the fail-over
		err = errors.Join(err, p.lagging.Restore(), p.behind(ctx))
	}
	if p.catchUp != nil && p.bed.Rig.Config().Database == rig.OneServer {
		err = errors.Join(err, p.catchUp(ctx))
	}
	err = errors.Join(err, p.bed.rec.awaitConnected(ctx))
	if err != nil {
		return err
	}
	p.healed = p.bed.Since()
	var all sync.WaitGroup
	for _, r := range p.runs {
		all.Go(r.finish)
	}
	all.Wait()
	if p.catchUp != nil && p.bed.Rig.Config().Database != rig.OneServer { // when all have sold
		err = errors.Join(err, p.catchUp(ctx))
	}
	return err
}

func (r *run) finish() {
	for _, b := range r.clients {
		b.stopped = ""
	}
	if r.subject.Begins() != chaos.Awaits { // buyLast opens the latch
		r.awaitAnswers()
	}
}

// awaitAnswers waits until all requests have their answers. It cancels a request that has no answer after 2*GrantBound.
func (r *run) awaitAnswers() {
	for _, b := range r.clients {
		if b.ended == nil {
			continue
		}
		select {
		case <-b.ended:
		case <-time.After(2 * GrantBound):
			b.cancel()
			<-b.ended
		}
		r.collect(b)
	}
}

// BuyLast lets one more client buy of each strategy, when all faults have ended.
func (p *Player) BuyLast(ctx context.Context) error {
	for _, r := range p.runs {
		if err := r.buyLast(ctx); err != nil {
			return err
		}
	}
	return nil
}

// ReachRow ends the move RowLags: the sales of a stock in Redis reach MySQL's row again.
func (p *Player) ReachRow(ctx context.Context) error { return p.behind(ctx) }

// buyLast lets one more client buy. With a primitive, the client locks, or opens the latch.
func (r *run) buyLast(ctx context.Context) (err error) {
	r.last = &history.Op{}
	switch r.subject.Begins() {
	case chaos.Awaits:
		r.last.Outcome, err = r.openLatch(ctx)
		r.awaitAnswers()
		return err
	case chaos.Locks:
		*r.last, err = r.lastByHand(ctx)
		return err
	}
	for began := time.Now(); ; {
		last := r.bed.Buy(ctx, 1, r.subject, Wait(GrantBound))
		last.Client = chaos.Clients + 1
		r.ops, r.last = append(r.ops, last), &last
		// A connection that a fault has broken may fail once more. Then nothing was sold.
		again := last.Reason == string(api.Unavailable) && time.Since(began) < GrantBound
		if !again || sleep(ctx, 100*time.Millisecond) != nil {
			return ctx.Err()
		}
	}
}
