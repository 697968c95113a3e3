package experiment

import (
	"context"
	"errors"
	"time"

	"oversell/api"
	"oversell/lab/fault"
	"oversell/lab/history"
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
		step: "asked", thenAt: "read", holderParams: wait(3 * Lease), contenderParams: wait(grantBound), lapse: pauseLapse(),
		perform: eachCommand(1, decided, func(e *Experiment, held *heldCommands) { e.inject = held.delayAnswer }),
	}
}

// delayAnswer delays the answer to the nth command and holds back the next, until the holder has its lock: then the run
// has a verdict. An acquisition may have several commands.
func (h *heldCommands) delayAnswer(ctx context.Context, r *round) (fault.Heal, error) {
	delay := 2 * Lease / 3 / time.Duration(h.nth) // a driver has many answers for a command, or a short time-out
	links := r.lockLinks(holder)
	for _, link := range links {
		if err := link.Delay(delay); err != nil {
			return nil, err
		}
		gate, err := link.HoldCommand(r.lockText(), h.nth+1)
		if err != nil {
			return nil, err
		}
		h.gates = append(h.gates, gate)
	}
	r.span.What, r.span.Who = "answer delayed", name(r.on[holder])
	err := r.resumeToNext(ctx, never)
	if isClosed(r.participants[0].ended[holder]) || len(links) == 0 {
		r.missed = errors.New("the holder did not acquire the lock while its answers were late")
		h.refused = h.sawCommand() && r.participants[0].ops[holder].Outcome == history.Refused
	}
	return restore(links), err // before the holder goes on, which must not wait for its release
}
