package experiment

import (
	"context"
	"errors"

	"oversell/api"
	"oversell/lab/fault"
	"oversell/lab/history"
	"oversell/lab/rig"
)

// splitBrain has two masters of one Redis, each with its own clients: the old one, and the one that Sentinel
// has made. Holder and contender are on different sides, and sell from the same row of MySQL. The seed chooses
// the sides; 24 seeds in a row have all orders on both.
func splitBrain() Experiment {
	e := splitFirst(oldSide)
	e.Hazard, e.ClaimedAs, e.Lab = "split-brain", "failover", engineLab(rig.RedisSentinel, 0, engineLease)
	e.lease = engineLease
	e.Title = api.Text{
		EN: "Sentinel promotes a replica, while the old master goes on serving its clients",
		ZH: "Sentinel 提升了从节点，旧主节点仍在为它那一侧的客户端服务（脑裂）",
	}
	e.Shows = api.Text{EN: "two masters, and a holder on each of them", ZH: "两个主节点，各有一个持锁者"}
	e.contenderParams, e.vary, e.judge = wait(engineWait), inOrder, mustBeReached
	return e
}

// oldSide returns the role whose request is on the side of the old master.
func oldSide(seed int64) int { return by(seed>>2, holder, contender) }

// minReplicas is splitBrain with a master that requires a replica: the old one rejects the contender.
func minReplicas() Experiment {
	e := splitFirst(func(int64) int { return contender })
	e.Hazard, e.Default, e.Lab = "min-replicas", Protects, engineLab(rig.RedisSentinel, 1, engineLease)
	e.lease = engineLease
	e.Title = api.Text{EN: "as split-brain, with min-replicas-to-write 1", ZH: "脑裂，min-replicas-to-write 为 1"}
	e.Shows = api.Text{EN: "the old master rejects the contender", ZH: "旧主节点拒绝竞争者"}
	e.contenderParams, e.vary = wait(0), holderInOrder
	e.judge = func(p *participant) *finding {
		if p.ops[contender].Outcome == history.OK {
			return &finding{api.Broken, MutualExclusion, api.Text{
				EN: "The old master has granted the lock without a replica.",
				ZH: "旧主节点没有从节点，仍然发出了锁。",
			}}
		}
		return mustSell(stalled(api.Text{
			EN: "The holder, which is on the side of the new master, did not sell.",
			ZH: "持锁者在新主节点一侧，却没有卖出。",
		}), holder)(p)
	}
	return e
}

// splitFirst returns an experiment in which Redis is split before the first request. The request of the
// given role is on the side of the old master.
func splitFirst(role func(seed int64) int) Experiment {
	var heal fault.Heal
	return Experiment{
		Group: split, Applies: onTopology, Fenced: true,
		healLate: true,
		prepare: func(ctx context.Context, r *round) (err error) {
			old := name(r.on[role(r.seed)])
			if heal, err = r.injectAll(ctx, fault.MastersOf(r.bed.Rig).Split(old)); err != nil {
				return err
			}
			if err := r.bed.Rig.AwaitReady(ctx, old); err != nil { // the old master may reject writes without its replica
				return err
			}
			return r.awaitLocks(ctx, old)
		},
		inject: func(context.Context, *round) (fault.Heal, error) { return heal, nil },
	}
}

// awaitLocks waits until the locks of all replicas but one can be cleared: their clients have found the new master.
func (r *round) awaitLocks(ctx context.Context, but string) (err error) {
	for n := range r.bed.Rig.Addresses().Replicas {
		late := eventually(ctx, name(n)+" clears the locks of a product", func() bool {
			if name(n) != but {
				_, err = r.bed.addProduct(ctx, n, pieces)
			}
			return err == nil
		})
		if late != nil {
			return errors.Join(late, err)
		}
	}
	return nil
}

// splitRenewal splits Redis while a lock is held that all of them have. The old master renews its lease, and
// on the new one the lease ends. It shows what the replication of each lock, as by WAIT, does not prevent.
func splitRenewal() Experiment {
	return Experiment{
		Hazard: "split-renewal", Group: splitLater, Fenced: true, Applies: func(c Card) bool { return onTopology(c) && c.Renews },
		Default: Breaks, Lab: engineLab(rig.RedisSentinel, 0, Lease),
		Title:           api.Text{EN: "as split-brain, with a lock that was replicated before", ZH: "脑裂之前锁已复制到从节点"},
		Shows:           api.Text{EN: "the old master renews the lock, on the new one it expires", ZH: "旧主节点继续给锁续期，新主节点上的锁到期"},
		contenderParams: wait(grantBound), healLate: true,
		// The holder stops before its last check, or nothing but a fence could stop its write.
		vary: func(e Experiment, seed int64) Experiment {
			e.step = by(seed, "read", "granted")
			return e
		},
		inject: func(ctx context.Context, r *round) (fault.Heal, error) {
			masters := fault.MastersOf(r.bed.Rig)
			if err := masters.AwaitReplicated(ctx); err != nil {
				return nil, err
			}
			return r.injectAll(ctx, masters.Split(name(r.on[holder])))
		},
		judge: mustSell(stalled(api.Text{
			EN: "The contender did not get the lock on the new master.",
			ZH: "竞争者在新主节点上没有拿到锁。",
		}), contender),
	}
}

// splitRenewalMin is splitRenewal with a master that requires a replica: the old one rejects the renewal.
func splitRenewalMin() Experiment {
	e := splitRenewal()
	e.Hazard, e.Default, e.ClaimedAs, e.Lab = "min-replicas-renewal", Silent, "cutoff", engineLab(rig.RedisSentinel, 1, Lease)
	e.Title = api.Text{EN: "as split-renewal, with min-replicas-to-write 1", ZH: "脑裂之前锁已复制，min-replicas-to-write 为 1"}
	e.Shows = api.Text{EN: "the renewal is rejected, and the holder stops in time", ZH: "续期被拒绝，持锁者及时停止"}
	return e
}
