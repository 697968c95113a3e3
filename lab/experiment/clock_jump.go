package experiment

import (
	"context"
	"time"

	"oversell/api"
	"oversell/lab/fault"
	"oversell/lab/rig"
)

func clockJump() Experiment {
	return Experiment{
		Hazard: "clock-jump", Group: serversFail, Basic: true, Applies: locksOn("redis", "zookeeper"), Fenced: true,
		Title: api.Text{EN: "the clocks of all Redis servers jump ahead by an hour", ZH: "所有 Redis 的时钟快进一小时"},
		Shows: api.Text{EN: "keys expire early, and there are two holders", ZH: "键提前过期，出现两个持锁者"},
		step:  "writing", contenderParams: wait(5 * time.Second),
		inject: func(ctx context.Context, r *round) (fault.Heal, error) {
			jump := func(s *rig.Server) fault.Fault { return fault.ClockJump(s, time.Hour) }
			return r.injectInto(ctx, jump, "redis-1", "redis-2", "redis-3", "redis-4", "redis-5")
		},
	}
}
