package experiment

import (
	"context"
	"fmt"

	"oversell/api"
	"oversell/lab/fault"
	"oversell/lab/history"
	"oversell/lab/rig"
)

// splitBrain has two masters of one Redis, each with its own clients: the old one, and the one that Sentinel
// has made. Holder and contender are on different sides, and sell from the same row of MySQL. The seed chooses
// the sides; 24 seeds in a row have all orders on both.
func splitBrain() Experiment {
	proc := splitFirst(func(r *round) int { return oldSide(r.seed) })
	proc.contenderParams = wait(engineWait)
	return Experiment{
		Hazard: "split-brain", Title: "Sentinel promotes a replica, while the old master goes on serving its clients",
		Shows: "two masters, and a holder on each of them", ClaimedAs: "failover",
		Applies: onTopology, Fenced: true, Lab: engineLab(rig.RedisSentinel, 0, engineLease),
		perform: func(ctx context.Context, r *round) ([]Result, error) { return proc.inOrder(r.seed).perform(ctx, r) },
	}
}

// oldSide returns the role whose request is on the side of the old master.
func oldSide(seed int64) int { return []int{holder, contender}[seed>>2&1] }

// minReplicas is splitBrain with a master that requires a replica: the old one rejects the contender.
func minReplicas() Experiment {
	granted := finding{api.Broken, MutualExclusion, api.Text{EN: "The old master has granted the lock without a replica.", ZH: "旧主节点没有从节点，仍然发出了锁。"}}
	proc := splitFirst(func(*round) int { return contender })
	proc.contenderParams = wait(0)
	proc.judge = func(p *participant) *finding {
		if p.ops[contender].Outcome == history.OK {
			return &granted
		}
		return mustSell(finding{api.Stalled, Progress, api.Text{EN: "The holder, which is on the side of the new master, did not sell.", ZH: "持锁者在新主节点一侧，却没有卖出。"}}, holder)(p)
	}
	return Experiment{
		Hazard: "min-replicas", Title: "as split-brain, with min-replicas-to-write 1",
		Shows: "the old master rejects the contender", Default: Protects,
		Applies: onTopology, Fenced: true, Lab: engineLab(rig.RedisSentinel, 1, engineLease),
		perform: func(ctx context.Context, r *round) ([]Result, error) {
			ordered := proc.inOrder(r.seed)
			ordered.contenderStops = ""
			return ordered.perform(ctx, r)
		},
	}
}

// splitRenewal splits Redis while a lock is held that all of them have. The old master renews its lease, and
// on the new one the lease ends. It shows what the replication of each lock, as by WAIT, does not prevent.
func splitRenewal() Experiment {
	return renewalAfterSplit(Experiment{
		Hazard: "split-renewal", Title: "as split-brain, with a lock that was replicated before", Shows: "the old master renews the lock, on the new one it expires",
		Default: Breaks,
	}, 0)
}

// splitRenewalMin is splitRenewal with a master that requires a replica: the old one rejects the renewal.
func splitRenewalMin() Experiment {
	return renewalAfterSplit(Experiment{
		Hazard: "min-replicas-renewal", Title: "as split-renewal, with min-replicas-to-write 1", Shows: "the renewal is rejected, and the holder stops in time",
		ClaimedAs: "cutoff",
	}, 1)
}

func renewalAfterSplit(e Experiment, minReplicas int) Experiment {
	e.Applies = func(c Card) bool { return onTopology(c) && c.Renews }
	e.Fenced, e.Lab = true, engineLab(rig.RedisSentinel, minReplicas, Lease)
	e.perform = func(ctx context.Context, r *round) ([]Result, error) {
		proc := procedure{
			// The holder stops before its last check, or nothing but a fence could stop its write.
			step:            []string{"read", "granted"}[uint64(r.seed)%2], //nolint:gosec // any number will do
			contenderParams: wait(grantBound), healLate: true,
			inject: func(ctx context.Context, r *round) (fault.Heal, error) {
				masters := fault.MastersOf(r.bed.Rig)
				if err := masters.AwaitReplicated(ctx); err != nil {
					return nil, err
				}
				return r.injectAll(ctx, masters.Split(name(r.on[holder])))
			},
			judge: mustSell(finding{api.Stalled, Progress, api.Text{EN: "The contender did not get the lock on the new master.", ZH: "竞争者在新主节点上没有拿到锁。"}}, contender),
		}
		return proc.perform(ctx, r)
	}
	return e
}

// splitFirst returns a procedure in which Redis is split before the first request. The request of the
// given role is on the side of the old master.
func splitFirst(role func(*round) int) procedure {
	var heal fault.Heal
	return procedure{
		healLate: true,
		prepare: func(ctx context.Context, r *round) (err error) {
			old := name(r.on[role(r)])
			if heal, err = r.injectAll(ctx, fault.MastersOf(r.bed.Rig).Split(old)); err != nil {
				return err
			}
			r.span.From = r.bed.since()
			return r.bed.Rig.AwaitReady(ctx, old) // the old master may reject writes without its replica
		},
		inject: func(context.Context, *round) (fault.Heal, error) { return heal, nil },
	}
}

// quorumLoss kills the master when only one Sentinel is left. Nothing is sold until the other Sentinels are
// back. Then the new master has the lock, which had been replicated: the contender does not get it.
func quorumLoss() Experiment {
	return Experiment{
		Hazard: "quorum-loss", Title: "two of three Sentinels die, then the Redis master", Shows: "sales stop, and go on when the Sentinels are back",
		Default: Protects, Applies: onTopology, Fenced: true, Lab: engineLab(rig.RedisSentinel, 0, engineLease),
		perform: func(ctx context.Context, r *round) ([]Result, error) {
			proc := keepLock().inOrder(r.seed)
			proc.contenderStops = ""
			proc.inject = func(ctx context.Context, r *round) (fault.Heal, error) {
				left := fmt.Sprintf("sentinel-%d", 1+uint64(r.seed)%3) //nolint:gosec // any number will do
				heal, err := r.injectAll(ctx, fault.MastersOf(r.bed.Rig).LoseQuorum(left))
				if err != nil {
					return nil, err
				}
				r.send(ctx, observer, wait(0))
				r.await(observer)
				if err := heal(context.WithoutCancel(ctx)); err != nil {
					return heal, err
				}
				return heal, r.bed.Rig.AwaitReady(ctx)
			}
			proc.explain = func(result *Result, p *participant) {
				without := Answer(p.ops[observer])
				result.Why = joined(result.Why, api.Textf("While one Sentinel was left, a request got: %[1]s.", "只剩一个 Sentinel 时，一个请求的应答：%[2]s。", without.EN, without.ZH))
			}
			return proc.perform(ctx, r)
		},
	}
}
