package experiment

import (
	"context"
	"time"

	"oversell/api"
	"oversell/lab/fault"
	"oversell/lab/history"
	"oversell/lab/rig"
)

// lostReply loses the answer to an acquisition, so the client does not know that it has the lock.
func lostReply() Experiment {
	return Experiment{
		Hazard: "lost-reply", Group: linkFails, Applies: claimedOrOnTrial("lost-reply", "redis"),
		Title: api.Text{EN: "the answer to an acquisition is lost", ZH: "加锁成功，应答却丢失"},
		Shows: api.Text{EN: "an orphaned lock keeps the others waiting", ZH: "锁被一个不知道自己已加锁的请求占住"},
		step:  "asked", holderParams: wait(time.Second), contenderParams: wait(grantBound), inject: loseReply,
		group: Subject.Name, // each strategy needs its own fault, and a link has one fault at a time
		judge: func(p *participant) *finding {
			waited := p.ops[contender].Waited
			if p.ops[contender].Outcome == history.OK && waited < Lease/2 {
				return nil
			}
			return stalled(api.Textf(
				"A lock without an owner kept the next request waiting for %v.",
				"一把没有主人的锁让下一个请求等了 %v。", waited.Round(100*time.Millisecond)))
		},
	}
}

func loseReply(ctx context.Context, r *round) (fault.Heal, error) {
	// Load scripts and create directories first: only the acquisition's answer must be lost.
	r.sendAndAwait(ctx, observer, nil)
	lockService := r.participants[0].Card.lockService()
	text := ""
	if lockService == "zookeeper" || lockService == "etcd" {
		text = "/oversell/" // the path of a new node; a heartbeat has no path
	}
	heal, err := r.injectAll(ctx, lostReplies(r.bed.links(name(r.on[holder]), lockService), text)...)
	if err != nil {
		return nil, err
	}
	if err := r.bed.replica(r.on[holder]).ResumeAll(ctx); err != nil {
		return heal, err
	}
	r.await(holder)
	return heal, nil
}

func lostReplies(links []*rig.Link, text string) (faults []fault.Fault) {
	for _, link := range links {
		faults = append(faults, fault.LostReply(link, text))
	}
	return faults
}
