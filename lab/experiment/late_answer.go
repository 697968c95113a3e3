package experiment

import (
	"context"
	"errors"
	"fmt"

	"oversell/api"
	"oversell/lab/fault"
)

// lateAnswer delays the answer to the holder's acquisition, and holds back all later commands of its
// lock, until the contender has the lock. A holder that counts its lease from the answer still
// believes in its lock then.
func lateAnswer() Experiment {
	return Experiment{
		Hazard: "late-answer", Group: linkFails, Applies: claimedOrOnTrial("late-answer", anyServer...),
		Title: api.Text{EN: "the answer to an acquisition is late, and the renewals do not arrive", ZH: "加锁的应答迟到，续期的命令没有到达"},
		Shows: api.Text{
			EN: "a holder that counts its lease from the answer writes after the end of the lease",
			ZH: "从应答算起租期的持有者，在租期结束之后写入",
		},
		step: "asked", thenAt: "read", holderParams: wait(2 * Lease), contenderParams: wait(grantBound), lapse: pauseLapse(),
		perform: delayEach,
	}
}

// delayEach delays the answer to the first command and holds back the second, then to the second and the third, and
// so on, until the holder has acquired its lock: an acquisition may have several commands.
func delayEach(ctx context.Context, r *round) (results []Result, err error) {
	for _, s := range r.subjects {
		last := r.safe(s, 0, nil)
		for nth := 1; nth <= mostCommands; nth++ {
			next := r.with(s)
			next.perform, next.inject = nil, delayAnswer(nth)
			found, err := next.once(ctx)
			if err = errors.Join(err, r.bed.heal(context.WithoutCancel(ctx))); err != nil {
				return results, fmt.Errorf("%s, command %d: %w", s.Name(), nth, err)
			}
			if last = found[0]; last.Verdict != api.Inconclusive {
				break
			}
		}
		results = append(results, last)
	}
	return results, ctx.Err()
}

func delayAnswer(nth int) func(context.Context, *round) (fault.Heal, error) {
	return func(ctx context.Context, r *round) (fault.Heal, error) { return r.delayAnswer(ctx, nth) }
}

func (r *round) delayAnswer(ctx context.Context, nth int) (fault.Heal, error) {
	const delay = 2 * Lease / 3
	links := r.lockLinks()
	if r.bed.idle {
		links = nil
	}
	for _, link := range links {
		if err := link.Delay(delay); err != nil {
			return nil, err
		}
		if _, err := link.HoldCommand(r.lockText(), nth+1); err != nil {
			return nil, err
		}
	}
	r.span.What, r.span.Who = "answer delayed", name(r.on[holder])
	heal := func(context.Context) (err error) { // before the holder goes on, which must not wait for its release
		for _, link := range links {
			err = errors.Join(err, link.Restore())
		}
		return err
	}
	err := r.resumeToNext(ctx, never)
	if isClosed(r.participants[0].ended[holder]) || len(links) == 0 {
		r.missed = errors.New("the holder did not acquire the lock while its answers were late")
	}
	return heal, err
}
