package experiment

import (
	"context"
	"errors"

	"oversell/api"
	"oversell/lab/fault"
	"oversell/lab/history"
)

// lateAcquire delays each command of an acquisition until another request has acquired the lock. The lock of a killed
// holder has expired before, so an acquisition that reads that, and then takes the lock over, has read too early.
func lateAcquire() Experiment {
	return Experiment{
		Hazard: "late-acquire", Group: holderFails, Applies: Card.onTrial,
		Title: api.Text{
			EN: "a command of an acquisition arrives late, when another request holds the lock",
			ZH: "加锁的一条命令迟到，锁已被另一个请求持有",
		},
		Shows: api.Text{
			EN: "an acquisition that looks first, and takes the lock in another command, takes the lock of another request",
			ZH: "先查看、再用另一条命令加锁，会夺走别人的锁",
		},
		step: "asked", thenAt: "granted", holderParams: wait(grantBound), contenderParams: working(Lease), contenderAt: "read",
		judge: func(p *participant) *finding {
			if p.ops[contender].Reason != string(api.Lost) {
				return nil
			}
			return &finding{api.Aborted, "", api.Text{
				EN: "The lock was taken from the contender, which noticed it and did not write.",
				ZH: "竞争者的锁被夺走，它发现了，没有写入。",
			}}
		},
		perform: eachCommand(1, api.Verdict.Failed, func(e *Experiment, held *heldCommands) {
			e.inject = held.delayAfterCrash
			e.explain = held.arrivedLate(api.Text{EN: "acquisition", ZH: "加锁"})
		}),
	}
}

// delayAfterCrash lets an observer acquire the lock, kills it, and waits until its lease has ended. Then it holds back
// the nth command of the holder.
func (h *heldCommands) delayAfterCrash(ctx context.Context, r *round) (fault.Heal, error) {
	if err := r.bed.stop(ctx, r.on[observer], r.participants[0].Subject, "read"); err != nil {
		return nil, err
	}
	r.send(ctx, observer, nil)
	if err := r.awaitStopped(ctx, observer); err != nil {
		return nil, err
	}
	restart, err := killReplica(observer)(ctx, r)
	if err != nil {
		return restart, err
	}
	if err := sleep(ctx, 3*Lease/2); err != nil {
		return restart, err
	}
	r.earlier, r.span = append(r.earlier, r.span), history.Span{From: r.bed.since()}
	deliver, err := h.delay(ctx, r)
	return func(ctx context.Context) error { return errors.Join(deliver(ctx), restart(ctx)) }, err
}
