package experiment

import (
	"context"
	"time"

	"oversell/api"
	"oversell/lab/fault"
	"oversell/lab/history"
	"oversell/lab/rig"
)

// resharding moves the slot of the held lock to another master of the cluster. The contender tries at one
// stage of this move, and the holder releases at the same stage or a later one. Ten seeds in a row have all
// pairs of stages.
func resharding() Experiment {
	var stages [][2]int // of the contender's try, and of the holder's release
	for try := fault.Announced; try <= fault.Reassigned; try++ {
		for release := try; release <= fault.Reassigned; release++ {
			stages = append(stages, [2]int{try, release})
		}
	}
	var masters *fault.Masters
	var move *fault.Resharding
	e := keepLock(rig.RedisCluster)
	e.Hazard, e.group = "resharding", Subject.Name
	e.Title = api.Text{
		EN: "a Redis cluster moves the slot of a held lock to another master",
		ZH: "持锁期间，Redis 集群把锁所在的槽迁移到另一个主节点",
	}
	e.Shows = api.Text{EN: "the lock moves with its slot", ZH: "锁随槽一起迁移"}
	e.stocked = func(ctx context.Context, r *round) error {
		masters = fault.MastersOf(r.bed.Rig)
		return masters.Observe(ctx)
	}
	e.inject = func(ctx context.Context, r *round) (heal fault.Heal, err error) {
		if move, err = masters.Reshard(ctx); err != nil {
			return nil, err
		}
		r.span.What, r.span.Who = "resharding", "redis"
		return move.Finish, move.Advance(ctx, by(r.seed, stages...)[0])
	}
	e.meanwhile = func(ctx context.Context, r *round) error {
		r.await(contender)
		return move.Advance(ctx, by(r.seed, stages...)[1])
	}
	e.after = func(ctx context.Context, r *round) error {
		// Until the slot has moved, an acquisition may get TRYAGAIN: the lock is missing, its counter is not.
		if err := move.Finish(ctx); err != nil {
			return err
		}
		return sendSuccessor(ctx, r)
	}
	return e
}

// keepLock returns an experiment in which the contender must not get the holder's lock in spite of a fault,
// and a successor must get it after the holder's release.
func keepLock(topology rig.Topology) Experiment {
	return Experiment{
		Group: topologies, Default: Protects, Applies: onTopology, Fenced: true, Lab: engineLab(topology, 0, engineLease), lease: engineLease,
		contenderParams: wait(500 * time.Millisecond), healLate: true, vary: holderInOrder, after: sendSuccessor,
		judge: func(p *participant) *finding {
			for _, part := range []int{contender, observer} {
				if p.ops[part].Outcome == history.OK {
					return &finding{api.Broken, MutualExclusion, api.Text{
						EN: "A request sold during the fault, while the holder had the lock.",
						ZH: "故障期间，持锁者还持有锁，另一个请求却卖出了。",
					}}
				}
			}
			return mustSell(stalled(api.Text{
				EN: "The holder did not sell, or its successor did not within 10 s.",
				ZH: "持锁者没有卖出，或者后继者在 10 秒内没有卖出。",
			}), holder, successor)(p)
		},
	}
}

func sendSuccessor(ctx context.Context, r *round) error {
	r.sendAndAwait(ctx, successor, wait(engineWait))
	return nil
}
