package experiment

import (
	"context"
	"slices"
	"time"

	"oversell/api"
	"oversell/lab/fault"
	"oversell/lab/history"
	"oversell/lab/rig"
)

// lostReply loses the answer to an acquisition, so the client does not know that it has the lock.
func lostReply() Experiment {
	return Experiment{
		Hazard: "lost-reply", Group: linkFails, Applies: claimedOrOnTrial("lost-reply", anyServer...),
		Title: api.Text{EN: "the answer to an acquisition is lost", ZH: "加锁成功，应答却丢失"},
		Shows: api.Text{EN: "an orphaned lock keeps the others waiting", ZH: "锁被一个不知道自己已加锁的请求占住"},
		step:  "asked", holderParams: wait(time.Second), contenderParams: wait(grantBound),
		perform: eachCommand(1, api.Verdict.Failed, func(e *Experiment, held *heldCommands) { e.inject = held.loseReply }),
		judge: func(p *participant) *finding {
			waited := p.ops[contender].Waited
			if p.ops[contender].Outcome == history.OK && waited < Lease/2+time.Duration(p.Card.PollMS)*time.Millisecond {
				return nil
			}
			return stalled(api.Textf(
				"A lock without an owner kept the next request waiting for %v.",
				"一把没有主人的锁让下一个请求等了 %v。", waited.Round(100*time.Millisecond)))
		},
	}
}

// loseReply loses the answer to the nth command of the holder's acquisition, or of its release.
func (h *heldCommands) loseReply(ctx context.Context, r *round) (fault.Heal, error) {
	// Load scripts and create directories first: only the acquisition's answer must be lost.
	r.sendAndAwait(ctx, observer, nil)
	links := r.lockLinks(holder)
	for _, link := range links {
		gate, err := link.LoseAnswer(r.lockText(), h.nth)
		if err != nil {
			return nil, err
		}
		h.gates = append(h.gates, gate)
	}
	r.span.What, r.span.Who = "lost reply of "+r.participants[0].Card.lockService(), name(r.on[holder])
	heal := restore(links)
	if err := r.bed.replica(r.on[holder]).ResumeAll(ctx); err != nil {
		return heal, err
	}
	r.await(holder)
	if !slices.ContainsFunc(links, (*rig.Link).HasLostReply) {
		return heal, h.allSent()
	}
	return heal, nil
}
