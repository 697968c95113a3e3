package experiment

import (
	"context"

	"oversell/api"
	"oversell/lab/fault"
)

// partition lets the holder reach two of five Redis, and the contender the other three. Only the
// contender has a majority.
func partition() Experiment {
	return Experiment{
		Hazard: "partition", Group: linkFails, Applies: claimedOrOnTrial("partition", "redlock"),
		Title: api.Text{
			EN: "one replica reaches two of five Redis, another one the other three",
			ZH: "一个副本只连得上五个 Redis 中的两个，另一个副本只连得上其余三个",
		},
		Shows: api.Text{EN: "two holders, if two of five are enough", ZH: "如果两个就够，会有两个持锁者"},
		step:  "asked", thenAt: "writing", holderParams: wait(0), contenderParams: wait(grantBound),
		inject: divideRedis, group: Subject.Name,
	}
}

func divideRedis(ctx context.Context, r *round) (fault.Heal, error) {
	faults, err := r.onLinks(fault.Cut, holder, "redis-3", "redis-4", "redis-5")
	if err != nil {
		return nil, err
	}
	others, err := r.onLinks(fault.Cut, contender, "redis-1", "redis-2")
	if err != nil {
		return nil, err
	}
	heal, err := r.injectAll(ctx, append(faults, others...)...)
	if err != nil {
		return nil, err
	}
	r.span.What, r.span.Who = "partition", name(r.on[holder])
	return heal, r.resumeToNext(ctx, never)
}
