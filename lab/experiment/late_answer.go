package experiment

import (
	"context"
	"errors"
	"slices"

	"oversell/api"
	"oversell/lab/fault"
	"oversell/lab/rig"
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
		inject: delayAnswer, group: Subject.Name,
	}
}

func delayAnswer(ctx context.Context, r *round) (fault.Heal, error) {
	const delay = 2 * Lease / 3
	links := r.lockLinks()
	if r.bed.idle {
		links = nil
	}
	var seen []*rig.HeldCommand
	for _, link := range links {
		if err := link.Delay(delay); err != nil {
			return nil, err
		}
		gate, err := link.HoldCommand(r.lockText(), 2)
		if err != nil {
			return nil, err
		}
		seen = append(seen, gate)
	}
	r.span.What, r.span.Who = "answer delayed", name(r.on[holder])
	heal := func(context.Context) (err error) { // before the holder goes on, which must not wait for its release
		for _, link := range links {
			err = errors.Join(err, link.Restore())
		}
		return err
	}
	err := r.resumeToNext(ctx, never)
	if !slices.ContainsFunc(seen, func(g *rig.HeldCommand) bool { return g.Count() > 0 }) {
		r.missed = errors.New("no command of the acquisition was seen, whose answer could be delayed")
	}
	return heal, err
}
