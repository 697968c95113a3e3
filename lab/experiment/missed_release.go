package experiment

import (
	"context"
	"time"

	"oversell/api"
	"oversell/lab/fault"
)

// missedRelease holds back each command of a waiter until the holder has released the lock. A waiter that looks first,
// and subscribes in another command, then waits for a message that has been sent.
func missedRelease() Experiment {
	const look = Lease / 3 // in which a waiter sends its next command, unless it sleeps; the lock is still held then
	return Experiment{
		Hazard: "missed-release", Group: linkFails, Applies: func(c Card) bool { return c.onTrial() && (!c.Unchecked || c.Renews) },
		Title: api.Text{EN: "the lock is released between two commands of a waiter", ZH: "锁在等待者的两条命令之间被释放"},
		Shows: api.Text{EN: "a waiter that subscribes after its look at the lock sleeps through the release", ZH: "先查看锁、之后才订阅的等待者错过锁的释放"},
		step:  "read", contenderParams: wait(look + 2*grantBound),
		perform: eachCommand(1, api.Verdict.Failed, func(e *Experiment, held *heldCommands) {
			var released time.Duration
			e.inject = func(_ context.Context, r *round) (fault.Heal, error) {
				r.span.What, r.span.Who = "command held back", name(r.on[contender])
				err := held.arm(r, contender)
				return restore(held.links), err
			}
			e.meanwhile = func(ctx context.Context, r *round) error {
				_ = within(ctx, look+time.Duration(r.participants[0].Card.PollMS)*time.Millisecond, "a command of the waiter", func() bool {
					return held.name() != "" || isClosed(r.participants[0].ended[contender])
				})
				if err := r.bed.replica(r.on[holder]).ResumeAll(ctx); err != nil {
					return err
				}
				r.await(holder)
				released = r.bed.since()
				_ = sleep(ctx, look/2) // late enough for a waiter that takes old messages for those of another wait
				held.deliver()
				if held.name() == "" && ctx.Err() == nil {
					return held.allSent()
				}
				return ctx.Err()
			}
			e.judge = func(p *participant) *finding {
				late := p.ops[contender].Return - released
				if late < grantBound+time.Duration(p.Card.PollMS)*time.Millisecond {
					return nil
				}
				return stalled(api.Textf("The command %[1]s, number %[2]d of the waiter, arrived after the holder's release. The waiter still did not have the lock %[3]v later.",
					"等待者的第 %[2]d 条命令 %[1]s 在持锁者释放锁之后到达，此后 %[3]v 它仍然没有拿到锁。", held.name(), held.nth, late.Round(time.Second)))
			}
		}),
	}
}
