package experiment

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"oversell/api"
	"oversell/lab/chaos"
	"oversell/lab/check"
	"oversell/lab/history"
)

// CarryOut carries out a plan on a strategy, with a new product, and judges what was recorded. The moves of the result are
// those that were possible.
func (bed *Testbed) CarryOut(ctx context.Context, s Subject, p chaos.Plan, seed int64) (d Drawn, err error) {
	if s.product, err = bed.addProduct(ctx, 0, plenty); err != nil {
		return d, err
	}
	bed.rec.forget()
	all, _, err := bed.playOn(ctx, p, 0, s)
	if err != nil {
		return d, err
	}
	d = all[0]
	d.Seed = seed
	return d, nil
}

// playOn carries out a plan on strategies that one fault can serve, and judges each of them as CarryOut does.
func (bed *Testbed) playOn(ctx context.Context, p chaos.Plan, nth int, subjects ...Subject) (all []Drawn, player *player, err error) {
	lost := bed.rec.lostEvents()
	player = bed.player(inOrderOfClients(), subjects...)
	player.nth = nth
	if p.Has(chaos.FailsOver) && !p.Has(chaos.Lags) {
		if player.lagging, err = bed.cutReplication(); err != nil {
			return nil, nil, err
		}
	}
	if err = player.play(ctx, p); err != nil {
		return nil, nil, errors.Join(err, player.finish(context.WithoutCancel(ctx)))
	}
	if err := player.finish(ctx); err != nil {
		return nil, nil, err
	}
	for _, r := range player.runs {
		last, err := r.buyLast(ctx)
		if err != nil {
			return nil, nil, err
		}
		d, err := r.judge(ctx, last)
		if err != nil {
			return nil, nil, err
		}
		if r.subject.primitive == nil {
			d.Result = d.withLostEvents(bed.rec.lostEvents() - lost)
		}
		all = append(all, d)
	}
	return all, player, nil
}

// judge judges what was recorded of a run, in which the last client has had this answer.
func (r *run) judge(ctx context.Context, last history.Op) (d Drawn, err error) {
	bed, s, p := r.bed, r.subject, r.done
	d = Drawn{Moves: p, Skipped: r.skipped, Coverage: r.coverage, Result: Result{
		Hazard: Chaos, Strategy: s.Card.ID, Fenced: s.Fenced, Claim: Protects, MySQL: bed.mysql, Plan: p.String(),
		Recording: s.Card.Leased(history.Recording{Start: bed.rec.start, Stock: plenty, Ops: r.ops, Events: bed.rec.eventsOf(s.key()), Spans: r.spans}),
	}}
	var found finding
	if s.primitive != nil {
		found = r.findByHand(&d.Recording, last)
		d.Why = found.why
	} else {
		left, err := bed.replica(0).Count(ctx, s.Card.ID, s.product)
		if err != nil {
			return d, err
		}
		stock := check.Stock(r.ops, plenty, left)
		d.Sold, d.Taken = stock.Sold, plenty-left
		found = r.findInPlan(p, d.Recording, stock, last)
		d.Why = api.Joined(d.Counts(), found.why)
	}
	d.Verdict, d.Invariant = found.verdict, found.invariant
	if d.Verdict.Failed() {
		d.Named, d.Claim = knownHazard(s, p, d.Result, r.held(d.Recording))
	}
	return d, nil
}

// find judges the history of the lock, the row, the order of its queue, and the progress, in this order: a lease that ended
// explains a lost update, but not two holders within it.
func (r *run) findInPlan(p chaos.Plan, rec history.Recording, stock check.Conservation, last history.Op) finding {
	card := r.subject.Card
	harmless := !p.Has(chaos.Faults()...) && !p.Has(chaos.Cancels) && (card.Renews || !p.Has(chaos.Passes))
	if card.Locker && card.Scope == api.ScopeShared {
		model := check.LockModel{Permits: 1, Fenced: r.subject.Fenced && !p.Has(chaos.Deletes, chaos.Crashes, chaos.Restarts, chaos.FailsOver)}
		if locked := model.Check(check.LockActs(r.majorityKept(p, rec))); locked.Verdict == api.Broken {
			return finding{api.Broken, MutualExclusion, locked.Why}
		}
	}
	if stock.Verdict == api.Broken {
		return finding{api.Broken, Conservation, api.Text{}}
	}
	if i := slices.IndexFunc(rec.Ops, func(op history.Op) bool { return op.Reason == history.SoldOut }); i >= 0 {
		return finding{api.Broken, Conservation, api.Text{EN: "A request was told that nothing is left.", ZH: "有请求被告知已售完，而库存还有。"}}
	}
	if fences := check.Fences(rec); r.subject.Fenced && fences.Verdict == api.Broken {
		return finding{api.Broken, FenceMonotonicity, fences.Why}
	}
	if linear := check.Linear(rec.Ops, rec.Stock); card.Safe && linear.Verdict == api.Broken {
		return finding{api.Broken, Linearizability, linear.Why}
	}
	if harmless {
		if found := cmp.Or(r.unexplained(rec), waitedAtTry(p, rec.Ops)); found != nil {
			return *found
		}
	}
	if idle := r.longestIdle(rec); idle > idleBound {
		return *stalled(api.Textf("When all faults had ended and nothing held the lock, a request waited %v for it in vain.", "所有故障都结束、也没有人持锁之后，一个请求白等了 %v。", idle.Round(time.Second)))
	}
	if last.Outcome != history.OK {
		return *stalled(api.Textf("When all faults had ended, no request acquired the lock within %v.", "所有故障都结束之后，%v 内没有请求拿到锁。", grantBound))
	}
	return finding{api.Safe, "", api.Text{}}
}

// majorityKept leaves the faults of one server out of the recording of a lock on a majority, which keeps the lock: as long as
// no other server and no link fails.
func (r *run) majorityKept(p chaos.Plan, rec history.Recording) history.Recording {
	servers := map[int]bool{}
	for _, m := range p {
		if m.Do.OnServer() {
			servers[m.Nth] = true
		}
	}
	alone := len(servers) == 1 && !p.Has(chaos.Deletes, chaos.Cut, chaos.Slow, chaos.Holds, chaos.Loses, chaos.Disconnect)
	if r.subject.Card.uses("redlock") && alone {
		rec.Spans = slices.DeleteFunc(slices.Clone(rec.Spans), func(s history.Span) bool { return !s.OnReplica() })
	}
	return rec
}

// unexplained finds what must not happen in a plan without a fault: a request that failed, a queue that was overtaken, and a
// waiter that was not woken by the release.
func (r *run) unexplained(rec history.Recording) *finding {
	for _, op := range rec.Ops {
		switch api.Outcome(op.Reason) {
		case api.Lost, api.Fenced, api.Unavailable, api.Unknown:
			answer := Answer(op)
			return &finding{api.Aborted, Progress, api.Textf("Nothing failed, and a request did not sell: %[1]s.", "没有任何故障，却有请求没有卖出：%[2]s。", answer.EN, answer.ZH)}
		}
	}
	if pairs := check.Overtakings(rec); r.subject.Card.Fair && len(pairs) > 0 {
		return &finding{api.Broken, "order of arrival", api.Textf("The request on %s was granted the lock before that on %s, which had queued earlier.",
			"%s 上的请求先拿到锁，而 %s 上的请求更早排队。", pairs[0].Second.Replica, pairs[0].First.Replica)}
	}
	if late := r.latestWake(rec); late > Lease/2+time.Duration(r.subject.Card.PollMS)*time.Millisecond {
		return stalled(api.Textf("A waiter was granted the lock %v after its release.", "锁释放 %v 之后，等待者才拿到它。", late.Round(10*time.Millisecond)))
	}
	return nil
}

// waitedAtTry finds a request that must try once, and waited for the lock. The requests of a client are in the order of the
// plan.
func waitedAtTry(p chaos.Plan, ops []history.Op) *finding {
	for _, m := range p {
		if m.Do != chaos.Sells {
			continue
		}
		i := slices.IndexFunc(ops, func(op history.Op) bool { return op.Client == m.Client+1 })
		if i < 0 {
			return nil
		}
		if took := ops[i].Return - ops[i].Call; m.Try && m.At == "" && took > Lease {
			return &finding{api.Broken, "time-out", api.Textf("%s must try once, and waited %v for the lock.", "%s 只应尝试一次，却等锁等了 %v。", chaos.Name(m.Client), took.Round(time.Second))}
		}
		ops = slices.Concat(ops[:i], ops[i+1:])
	}
	return nil
}

// held reports whether the lock was not granted to a request in vain. The last one may get it at last: how long the lease of
// a dead holder lasts must not change the verdict.
func (r *run) held(rec history.Recording) bool {
	last := len(rec.Ops) - 1 // -1 of a primitive
	return last >= 0 && (rec.Ops[last].Reason == history.NotAcquired || r.longestIdle(rec) > idleBound)
}

// idleBound is longer than the lease of a dead holder, and then that of a dead waiter before the request.
const idleBound = 2*Lease + time.Second

// longestIdle returns for how long a request waited in vain after the last fault, and after the last step of those that
// had held the lock by then.
func (r *run) longestIdle(rec history.Recording) (longest time.Duration) {
	for _, op := range rec.Ops {
		free := max(op.Call, r.healed)
		for _, e := range rec.Events {
			if chaos.PhaseAfter(e.Step) != chaos.Wait && e.At < op.Return {
				free = max(free, e.At)
			}
		}
		if op.Reason == history.NotAcquired {
			longest = max(longest, op.Return-free)
		}
	}
	return longest
}

// latestWake returns the longest time from a release to the next grant, if a request waited all that time. A request
// that a failpoint stopped before its grant does not count, nor does one that was granted before the step released of the
// last holder: then nobody knows when the lock was free.
func (r *run) latestWake(rec history.Recording) (latest time.Duration) {
	asked, released, holders := map[string]time.Duration{}, time.Duration(-1), map[string]bool{}
	for _, e := range rec.Events {
		switch e.Step {
		case api.Asked:
			asked[e.Owner] = e.At
		case api.Released:
			released = e.At
			delete(holders, e.Owner)
		case api.Granted:
			if since, waits := asked[e.Owner]; waits && released >= 0 && !r.delayed[e.Owner] && len(holders) == 0 {
				latest = max(latest, e.At-max(released, since))
			}
			holders[e.Owner] = true
		}
	}
	return latest
}
