package experiment

import (
	"context"
	"fmt"
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
	return Experiment{
		Hazard: "resharding", Title: "a Redis cluster moves the slot of a held lock to another master", Shows: "the lock moves with its slot",
		Default: Protects, Applies: onTopology, Fenced: true, Lab: engineLab(rig.RedisCluster, 0, engineLease),
		perform: func(ctx context.Context, r *round) ([]Result, error) {
			var stages [][2]int // of the contender's try, and of the holder's release
			for try := fault.Announced; try <= fault.Reassigned; try++ {
				for release := try; release <= fault.Reassigned; release++ {
					stages = append(stages, [2]int{try, release})
				}
			}
			at := stages[uint64(r.seed)%uint64(len(stages))] //nolint:gosec // any number will do
			var move *fault.Resharding
			proc := keepLock().inOrder(r.seed)
			proc.contenderStops = ""
			proc.inject = func(ctx context.Context, r *round) (heal fault.Heal, err error) {
				if move, err = fault.Reshard(ctx, r.bed.Rig, fmt.Sprintf("stock:%d", r.participants[0].product)); err != nil {
					return nil, err
				}
				r.span.What, r.span.Who = "resharding", "redis"
				return move.Finish, move.Advance(ctx, at[0])
			}
			proc.after = func(ctx context.Context, r *round) error {
				// Until the slot has moved, an acquisition may get TRYAGAIN: the lock is missing, its counter is not.
				if err := move.Finish(ctx); err != nil {
					return err
				}
				return sendSuccessor(ctx, r)
			}
			proc.meanwhile = func(ctx context.Context, r *round) error {
				r.await(contender)
				return move.Advance(ctx, at[1])
			}
			return proc.inGroups(Subject.Name)(ctx, r)
		},
	}
}

// keepLock returns a procedure in which the contender must not get the holder's lock in spite of a fault, and
// a successor must get it after the holder's release.
func keepLock() procedure {
	return procedure{
		contenderParams: wait(500 * time.Millisecond), healLate: true,
		after: sendSuccessor,
		judge: func(p *participant) *finding {
			for _, part := range []int{contender, observer} {
				if p.ops[part].Outcome == history.OK {
					return &finding{api.Broken, MutualExclusion, api.Text{EN: "A request sold during the fault, while the holder had the lock.", ZH: "故障期间，持锁者还持有锁，另一个请求却卖出了。"}}
				}
			}
			return mustSell(finding{api.Stalled, Progress, api.Text{EN: "The holder did not sell, or its successor did not within 10 s.", ZH: "持锁者没有卖出，或者后继者在 10 秒内没有卖出。"}}, holder, successor)(p)
		},
	}
}

func sendSuccessor(ctx context.Context, r *round) error {
	r.send(ctx, successor, wait(engineWait))
	r.await(successor)
	return nil
}
