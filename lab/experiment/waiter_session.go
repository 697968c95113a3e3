package experiment

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"strings"
	"time"

	"oversell/api"
	"oversell/lab/backend"
	"oversell/lab/fault"
	"oversell/lab/history"
	"oversell/lab/rig"
)

// waiterSession ends the session, or the lease, of a waiter, and with it the place in the queue. The
// waiter must leave, or queue again, before the holder releases the lock (etcd-io/etcd#19597). It must
// not acquire the lock with its old session.
func waiterSession() Experiment {
	return Experiment{
		Hazard: "waiter-session", Group: reported, Applies: locksOn("zookeeper", "etcd"),
		Title: api.Text{EN: "the session of a waiter expires", ZH: "等待者的会话过期"},
		Shows: api.Text{EN: "does it wait in vain, or acquire the lock beside the next waiter?", ZH: "它白白等待，还是与下一个等待者同时拿到锁？"},
		step:  "read", contenderParams: working(grantBound), contenderAt: "asked", inject: expireWaiter, judge: judgeWaiter,
		meanwhile: func(ctx context.Context, r *round) error { return r.awaitStep(ctx, contender, queued) },
		after:     func(_ context.Context, r *round) error { r.await(observer); return nil },
		explain: func(result *Result, p *participant) {
			answer := Answer(p.ops[observer])
			result.Why = api.Joined(result.Why, api.Textf(
				"The waiter whose session expired: %[1]s.",
				"会话过期的等待者：%[2]s。", answer.EN, answer.ZH))
		},
	}
}

// working lets the request work for a while. Two holders then overlap, even if one is granted later.
func working(wait time.Duration) url.Values {
	return url.Values{"wait": {wait.String()}, "hold": {(Lease / 2).String()}}
}

// expireWaiter lets an observer queue, ends its session, and gives it time to notice that.
func expireWaiter(ctx context.Context, r *round) (fault.Heal, error) {
	before, err := r.bed.places(ctx)
	if err != nil {
		return nil, err
	}
	r.send(ctx, observer, working(30*time.Second))
	if err := r.awaitStep(ctx, observer, queued); err != nil {
		return nil, err
	}
	// Not every waiter has a place in a queue, so the time is limited.
	var own places
	_ = within(ctx, Lease, "all waiters have a place", func() bool {
		now, err := r.bed.places(ctx)
		own = now.without(before)
		return err == nil && len(own) >= len(r.participants)
	})
	if err := r.endSessions(ctx, own); err != nil {
		return nil, err
	}
	r.span.What, r.span.Who, r.span.From = "session expired", name(r.on[observer]), r.bed.since()
	_ = within(ctx, Lease, "all waiters have left", func() bool {
		return !slices.ContainsFunc(r.participants, func(p *participant) bool { return !isClosed(p.ended[observer]) })
	})
	return noHeal, ctx.Err()
}

// endSessions revokes leases in etcd. A session of ZooKeeper has a password, so it is cut off until
// the server has expired it.
func (r *round) endSessions(ctx context.Context, own places) error {
	for _, place := range own {
		if isNode := strings.HasPrefix(place, "/"); isNode || r.bed.idle {
			continue
		}
		if err := backend.RevokeEtcdLease(ctx, r.bed.Rig.Addresses().Etcd[0], place); err != nil {
			return err
		}
	}
	var of []*rig.Link
	if slices.ContainsFunc(r.participants, func(p *participant) bool { return p.Card.uses("zookeeper") }) {
		of = r.bed.links(name(r.on[observer]), "zookeeper")
	}
	heal, err := r.injectAll(ctx, cuts(of)...)
	if err != nil {
		return err
	}
	ended := func() bool {
		now, err := r.bed.places(ctx)
		return err == nil && len(own) > 0 && len(own.without(now)) == len(own)
	}
	r.missed = within(ctx, 4*ZKSession, "the session of a waiter ends", ended)
	r.faults = nil // the end of the session is observed, and the cut is over
	return errors.Join(heal(context.WithoutCancel(ctx)), ctx.Err())
}

// places are the places in queues: the paths of the nodes of ZooKeeper sessions, and the leases of keys in etcd.
type places []string

func (p places) without(other places) places {
	return slices.DeleteFunc(slices.Clone(p), func(place string) bool { return slices.Contains(other, place) })
}

func (bed *Testbed) places(ctx context.Context) (places, error) {
	at := bed.Rig.Addresses()
	nodes, err1 := backend.EphemeralNodes(at.Zookeeper)
	leases, err2 := backend.EtcdLeases(ctx, at.Etcd[0])
	return slices.Concat(nodes, leases), errors.Join(err1, err2)
}

func judgeWaiter(p *participant) *finding {
	waiter := p.ops[observer]
	noticed := p.ops[contender].Call // the end of the time in which the waiter can notice its loss
	if waiter.Outcome != history.OK && waiter.Return > noticed {
		return stalled(api.Text{
			EN: "The waiter had lost its place in the queue, waited until the holder's release, and was rejected then.",
			ZH: "等待者在队列中的位置已经丢失，但一直等到持锁者释放之后才被拒绝。",
		})
	}
	late := stalled(api.Textf("The next waiter did not acquire the lock within %v.", "下一个等待者在 %v 内没有拿到锁。", grantBound))
	return mustSell(late, contender)(p)
}
