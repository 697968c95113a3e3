package experiment

import (
	"context"
	"time"

	"oversell/api"
	"oversell/lab/fault"
	"oversell/lab/history"
)

// waiterReset ends the connections of a waiter, and with them its subscription, its watch or its blocking command. Then
// the holder releases the lock. The waiter must learn of that, or must have returned an error before.
func waiterReset() Experiment {
	const look = Lease / 3 // in which the waiter can subscribe; the lock is still held then
	return Experiment{
		Hazard: "waiter-reset", Group: linkFails, Applies: func(c Card) bool {
			return claimedOrOnTrial("waiter-reset", anyServer...)(c) && (!c.Unchecked || c.Renews)
		},
		Title: api.Text{EN: "the connections of a waiter end while it waits", ZH: "等待者的连接在等待期间断开"},
		Shows: api.Text{EN: "a waiter that does not subscribe again sleeps through the release", ZH: "没有重新订阅的等待者错过锁的释放"},
		step:  "read", contenderParams: wait(look + 2*grantBound), contenderAt: "asked",
		meanwhile: func(ctx context.Context, r *round) error {
			if err := r.awaitStep(ctx, contender, queued); err != nil {
				return err
			}
			if err := sleep(ctx, look); err != nil {
				return err
			}
			_, err := r.injectOnLock(ctx, contender, fault.Disconnect)
			return err
		},
		judge: func(p *participant) *finding {
			waiter := p.ops[contender]
			late := waiter.Return - p.ops[holder].Return
			if late < 0 || waiter.Outcome == history.OK && late < grantBound+time.Duration(p.Card.PollMS)*time.Millisecond {
				return nil // also if it has returned an error
			}
			return stalled(api.Textf("The connections of the waiter ended. It still did not have the lock %v after the holder's release.",
				"等待者的连接断开了。持锁者释放锁 %v 之后，它仍然没有拿到锁。", late.Round(time.Second)))
		},
	}
}
