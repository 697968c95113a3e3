package experiment

import (
	"slices"
	"time"

	"oversell/api"
	"oversell/lab/chaos"
	"oversell/lab/check"
	"oversell/lab/history"
	"oversell/lab/player"
)

// This file has the rules for what a lock promises under all faults, and for what it promises without any fault.

// grantedTwice checks whether the lock was granted while another request held it within its lease.
func grantedTwice(p *played) *finding {
	if !p.Card.Locker || p.Card.Scope != api.ScopeShared {
		return nil
	}
	model := check.LockModel{Permits: 1, Fenced: p.Fenced && !p.Moves.Has(chaos.Deletes, chaos.Crashes, chaos.Restarts, chaos.FailsOver)}
	if got := model.Check(check.LockActs(p.majorityKept())); got.Verdict == api.Broken {
		return &finding{api.Broken, MutualExclusion, got.Why}
	}
	return nil
}

// grantedInNoOrder checks whether a primitive was granted although other requests held its permits.
func grantedInNoOrder(p *played) *finding {
	if got := (check.LockModel{Permits: p.Permits}).Check(p.Acts); got.Verdict == api.Broken {
		return &finding{api.Broken, MutualExclusion, got.Why}
	}
	return nil
}

func openedEarly(p *played) *finding {
	if p.OpenedEarly {
		return &finding{api.Broken, MutualExclusion, api.Text{EN: "The latch opened before it was counted down.", ZH: "闭锁还没有减到零就打开了。"}}
	}
	return nil
}

// majorityKept returns the recording of a run. For a lock on a majority of servers, it leaves out the faults if they
// struck one server only, and no link: the majority keeps the lock.
func (p *played) majorityKept() history.Recording {
	servers, rec := map[int]bool{}, p.Recording
	for _, m := range p.Moves {
		if m.Do.OnServer() {
			servers[m.Nth] = true
		}
	}
	alone := len(servers) == 1 && !p.Moves.Has(chaos.Deletes, chaos.Cut, chaos.Slow, chaos.Holds, chaos.Loses, chaos.Disconnect)
	if p.Card.Uses("redlock") && alone {
		rec.Spans = slices.DeleteFunc(slices.Clone(rec.Spans), func(s history.Span) bool { return !s.OnReplica() })
	}
	return rec
}

func toldSoldOut(p *played) *finding {
	if slices.ContainsFunc(p.Recording.Ops, func(op history.Op) bool { return op.Reason == history.SoldOut }) {
		return &finding{api.Broken, Conservation, api.Text{EN: "A request was told that nothing is left.", ZH: "有请求被告知已售完，而库存还有。"}}
	}
	return nil
}

func soldInNoOrder(p *played) *finding {
	if got := check.Linear(p.Recording.Ops, p.Recording.Stock); p.Card.Safe && got.Verdict == api.Broken {
		return &finding{api.Broken, Linearizability, got.Why}
	}
	return nil
}

// undisturbed reports whether the plan has nothing that may delay a request: no fault, and no lease that ends.
func (p *played) undisturbed() bool {
	return !p.Moves.Has(chaos.Faults()...) && !p.Moves.Has(chaos.Cancels) && (p.Card.Renews || !p.Moves.Has(chaos.Passes))
}

// failedByItself checks whether a request failed in a plan without any fault.
func failedByItself(p *played) *finding {
	for _, op := range p.Recording.Ops {
		switch api.Outcome(op.Reason) {
		case api.Lost, api.Fenced, api.Unavailable, api.Unknown:
			if p.undisturbed() {
				answer := Answer(op)
				return &finding{api.Aborted, Progress, api.Textf("Nothing failed, and a request did not sell: %[1]s.", "没有任何故障，却有请求没有卖出：%[2]s。", answer.EN, answer.ZH)}
			}
		}
	}
	return nil
}

// overtook checks whether a request overtook another one in a fair queue.
func overtook(p *played) *finding {
	if !p.Card.Fair || !p.undisturbed() {
		return nil
	}
	if pairs := check.Overtakings(p.Recording); len(pairs) > 0 {
		return &finding{api.Broken, "order of arrival", api.Textf("The request on %s was granted the lock before that on %s, which had queued earlier.",
			"%s 上的请求先拿到锁，而 %s 上的请求更早排队。", pairs[0].Second.Replica, pairs[0].First.Replica)}
	}
	return nil
}

// wokenLate checks whether a waiter got the lock too long after the release, so that the release did not wake it.
func wokenLate(p *played) *finding {
	if late := p.latestWake(); p.undisturbed() && late > player.Lease/2+time.Duration(p.Card.PollMS)*time.Millisecond {
		return stalled(api.Textf("A waiter was granted the lock %v after its release.", "锁释放 %v 之后，等待者才拿到它。", late.Round(10*time.Millisecond)))
	}
	return nil
}

// waitedAtTry checks whether a request that must try once waited for the lock. It assigns answers to moves: the requests
// of a client are in the order of the plan.
func waitedAtTry(p *played) *finding {
	if !p.undisturbed() {
		return nil
	}
	ops := p.Recording.Ops
	for _, m := range p.Moves {
		if m.Do != chaos.Sells {
			continue
		}
		i := slices.IndexFunc(ops, func(op history.Op) bool { return op.Client == m.Client+1 })
		if i < 0 {
			return nil
		}
		if took := ops[i].Return - ops[i].Call; m.Try && m.At == "" && took > player.Lease {
			return &finding{api.Broken, "time-out", api.Textf("%s must try once, and waited %v for the lock.", "%s 只应尝试一次，却等锁等了 %v。", chaos.Name(m.Client), took.Round(time.Second))}
		}
		ops = slices.Concat(ops[:i], ops[i+1:])
	}
	return nil
}

// idled checks whether a request waited longer than idleBound, and in vain, for a lock that nothing held.
func idled(p *played) *finding {
	if idle := p.longestIdle(); idle > idleBound {
		return stalled(api.Textf("When all faults had ended and nothing held the lock, a request waited %v for it in vain.", "所有故障都结束、也没有人持锁之后，一个请求白等了 %v。", idle.Round(time.Second)))
	}
	return nil
}

// noneAfterwards checks whether one more client got the lock after the end of all faults.
func noneAfterwards(p *played) *finding {
	if p.Last.Outcome != history.OK {
		return stalled(api.Textf("When all faults had ended, no request acquired the lock within %v.", "所有故障都结束之后，%v 内没有请求拿到锁。", player.GrantBound))
	}
	return nil
}

// held reports whether the lock was still held after all faults: the last client did not get it, or a request waited
// longer than idleBound in vain. The last client may get the lock in the end: how long the lease of a dead holder lasts
// must not change the verdict.
func (p *played) held() bool {
	return p.Permits == 0 && (p.Last.Reason == history.NotAcquired || p.longestIdle() > idleBound)
}

// idleBound is longer than the lease of a dead holder, followed by the lease of a dead waiter that was before the
// request.
const idleBound = 2*player.Lease + time.Second

// longestIdle returns for how long a request waited in vain after the last fault, and after the last step of those that
// had held the lock by then.
func (p *played) longestIdle() (longest time.Duration) {
	for _, op := range p.Recording.Ops {
		free := max(op.Call, p.Healed)
		for _, e := range p.Recording.Events {
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
func (p *played) latestWake() (latest time.Duration) {
	asked, released, holders := map[string]time.Duration{}, time.Duration(-1), map[string]bool{}
	for _, e := range p.Recording.Events {
		switch e.Step {
		case api.Asked:
			asked[e.Owner] = e.At
		case api.Released:
			released = e.At
			delete(holders, e.Owner)
		case api.Granted:
			if since, waits := asked[e.Owner]; waits && released >= 0 && !p.Delayed[e.Owner] && len(holders) == 0 {
				latest = max(latest, e.At-max(released, since))
			}
			holders[e.Owner] = true
		}
	}
	return latest
}
