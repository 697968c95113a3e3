package experiment

import (
	"context"

	"oversell/api"
	"oversell/lab/fault"
	"oversell/lab/rig"
)

// quorumLoss kills the master when only one Sentinel is left. Nothing is sold until the other Sentinels are
// back. Then the new master has the lock, which had been replicated: the contender does not get it.
func quorumLoss() Experiment {
	e := keepLock(rig.RedisSentinel)
	e.Hazard = "quorum-loss"
	e.Title = api.Text{EN: "two of three Sentinels die, then the Redis master", ZH: "3 个 Sentinel 宕机 2 个，然后 Redis 主节点宕机"}
	e.Shows = api.Text{EN: "sales stop, and go on when the Sentinels are back", ZH: "停止销售；Sentinel 恢复之后继续，锁没有丢失"}
	e.inject = func(ctx context.Context, r *round) (fault.Heal, error) {
		left := by(r.seed, "sentinel-1", "sentinel-2", "sentinel-3")
		heal, err := r.injectAll(ctx, fault.MastersOf(r.bed.Rig).LoseQuorum(left))
		if err != nil {
			return nil, err
		}
		r.sendAndAwait(ctx, observer, wait(0))
		if err := heal(context.WithoutCancel(ctx)); err != nil {
			return heal, err
		}
		return heal, r.bed.Rig.AwaitReady(ctx)
	}
	e.explain = func(result *Result, p *participant) {
		without := Answer(p.ops[observer])
		result.Why = api.Joined(result.Why, api.Textf(
			"While one Sentinel was left, a request got: %[1]s.",
			"只剩一个 Sentinel 时，一个请求的应答：%[2]s。", without.EN, without.ZH))
	}
	return e
}
