package experiment

import (
	"context"
	"slices"

	"oversell/api"
	"oversell/lab/fault"
	"oversell/lab/rig"
)

// renewalReply loses the answer to a renewal that the server has carried out
// (cirello-io/dynamolock#280). The lock is held, so its holder must keep it and sell.
func renewalReply() Experiment {
	gaveUp := &finding{api.Aborted, "", api.Text{
		EN: "The server had renewed the lock, but the holder gave it up and did not write.",
		ZH: "服务器已经续期，但持锁者放弃了锁，没有写入。",
	}}
	stuck := stalled(api.Textf("No other request acquired the lock within %v.", "%v 内没有其他请求拿到锁。", grantBound))
	return Experiment{
		Hazard: "renewal-reply", Group: reported, Applies: func(c Card) bool { return c.Locker && c.Renews },
		Title: api.Text{EN: "the answer to a renewal is lost", ZH: "续期成功，应答却丢失"},
		Shows: api.Text{EN: "does the holder give up a lock that it still has?", ZH: "持锁者会放弃其实还在的锁吗？"},
		step:  "read", contenderParams: wait(2 * grantBound), contenderAt: "asked", inject: loseRenewal, group: Subject.Name,
		// Without another renewal, the lease ends meanwhile, and the contender acquires the lock.
		meanwhile: func(ctx context.Context, _ *round) error { return sleep(ctx, 3*Lease/2) },
		lapse: api.Text{
			EN: "The holder stopped its renewals after the lost answer, and wrote after the end of its lease.",
			ZH: "应答丢失之后持锁者不再续期，租期结束后仍然写入。",
		},
		judge: func(p *participant) *finding {
			if f := mustSell(gaveUp, holder)(p); f != nil {
				return f
			}
			return mustSell(stuck, contender)(p)
		},
	}
}

// loseRenewal loses one answer on each link to the lock's servers, and waits until one is lost. The holder is stopped
// and has its lock, so what its replica sends to these servers is a renewal.
func loseRenewal(ctx context.Context, r *round) (fault.Heal, error) {
	service, text := r.participants[0].Card.lockService(), r.lockText()
	if text != "" && service == "mysql" {
		text = "UPDATE " // a renewal of ours names the row by its number
	}
	heal, err := r.injectOnLock(ctx, holder, func(l *rig.Link) fault.Fault {
		if service == "zookeeper" || service == "etcd" { // their renewals are heartbeats
			return fault.LostReplies(l)
		}
		return fault.LostAnswer(l, text, 1)
	})
	if err != nil {
		return nil, err
	}
	lost := func() bool { return slices.ContainsFunc(r.lockLinks(holder), (*rig.Link).HasLostReply) }
	_ = within(ctx, 2*Lease, "the answer to a renewal is lost", lost) // otherwise the fault has not landed
	return heal, ctx.Err()
}
