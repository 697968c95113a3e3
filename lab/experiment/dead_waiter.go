package experiment

import (
	"context"
	"slices"
	"time"

	"oversell/api"
	"oversell/lab/fault"
	"oversell/lab/history"
)

// deadWaiter kills a waiter, lets the holder go on, and expects that the waiter behind the dead one gets the lock. It
// does not apply to a lock whose lease ends meanwhile without notice, which breaks it by itself.
func deadWaiter() Experiment {
	return Experiment{
		Hazard: "dead-waiter", Group: linkFails, Applies: func(c Card) bool { return c.Locker && (!c.Unchecked || c.Renews) },
		Title: api.Text{EN: "a waiter in the middle of the queue is killed", ZH: "队列中间的一个等待者宕机"},
		Shows: api.Text{EN: "the waiter behind it enters beside the holder, or waits for ever", ZH: "排在后面的请求与持锁者同时进入临界区，或者一直等下去"},
		step:  "read", contenderParams: wait(deadWaiterLook + grantBound), contenderAt: "asked", explain: diedForTheHolder,
		inject: func(ctx context.Context, r *round) (fault.Heal, error) {
			r.send(ctx, observer, wait(30*time.Second))
			restart := func(ctx context.Context) error { return r.bed.restart(ctx, name(r.on[observer])) }
			return restart, r.awaitStep(ctx, observer, queued)
		},
		healLate: true, // a dead process that starts again could clean up what it left
		meanwhile: func(ctx context.Context, r *round) error {
			if err := r.awaitStep(ctx, contender, queued); err != nil {
				return err
			}
			if _, err := killReplica(observer)(ctx, r); err != nil {
				return err
			}
			return sleep(ctx, deadWaiterLook)
		},
		judge: mustSell(stalled(api.Textf("A waiter died. The request behind it did not get the lock, though the holder had ended %v before.",
			"一个等待者宕机。持锁者结束之后 %v 内，排在它后面的请求仍然没有拿到锁。", grantBound)), contender),
	}
}

// deadWaiterLook is the time after the death in which a waiter may enter beside the holder. The session of the dead
// one ends in it.
const deadWaiterLook = ZKSession + 3*time.Second

// diedForTheHolder calls a lock broken that let another request in, before the holder's lease was over, because a
// waiter died. A holder that notices this writes nothing, so no update is lost.
func diedForTheHolder(result *Result, p *participant) {
	events := result.Recording.Events
	granted := slices.IndexFunc(events, func(e history.Event) bool {
		return e.Owner == p.stopped[holder] && e.Step == string(api.Granted)
	})
	if result.Verdict != api.Safe || granted < 0 || p.ops[holder].Outcome == history.OK {
		return
	}
	if next := nextGrant(events, p.stopped[holder], events[granted].At); next > 0 && next < float64(Lease.Milliseconds()) {
		result.Verdict, result.Invariant = api.Broken, MutualExclusion
		result.Why = api.Joined(result.Counts(), api.Textf("After the death of a waiter, another request acquired the lock %.3f s after the holder, whose lease was not over.",
			"一个等待者死去之后，另一个请求在持锁者之后 %.3f 秒拿到了锁，而持锁者的租期还没有结束。", next/1000), p.answers())
	}
}

// queued returns the step that a waiting request reports: queued at a fair lock, otherwise asked.
func queued(c Card) string {
	if c.Fair {
		return string(api.Queued)
	}
	return string(api.Asked)
}
