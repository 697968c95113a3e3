package experiment

import (
	"context"

	"oversell/api"
	"oversell/lab/fault"
)

// bareMajority lets the holder acquire the lock on redis-1, redis-2 and redis-3 alone. Then redis-1
// loses the lock. Only two of five Redis reject the contender, so it has a majority, too.
func bareMajority() Experiment {
	return Experiment{
		Hazard: "bare-majority", Group: linkFails, Applies: claimedOrOnTrial("bare-majority", "redlock"), Fenced: true,
		Title: api.Text{EN: "one of a bare majority of Redis loses its data", ZH: "持锁者只在五个 Redis 中的三个上有锁，其中一个丢失了数据"},
		Shows: api.Text{EN: "another majority grants the lock again, and there are two holders", ZH: "另外三个又组成多数，出现两个持锁者"},
		step:  "asked", thenAt: "writing", holderParams: wait(2 * Lease), contenderParams: wait(grantBound), unrenewed: wait(Lease / 2),
		prepare: cutReplication, inject: loseBareMajority, group: Subject.Name,
		lapse: api.Text{
			EN: "The holder had the lock on three of five Redis. One of them lost it, and a new majority granted it to the contender.",
			ZH: "持锁者只在五个 Redis 中的三个上有锁。其中一个丢失了锁，竞争者又得到了多数。",
		},
	}
}

// loseBareMajority ends the holder's connections to redis-4 and redis-5 while it acquires the lock,
// and then fails redis-1 over to its replica, which lacks the lock. Not fault.Cut: some libraries wait
// for a server that hangs until the lease has ended, and acquire nothing.
func loseBareMajority(ctx context.Context, r *round) (fault.Heal, error) {
	resets, err := r.onLinks(fault.Reset, holder, "redis-4", "redis-5")
	if err != nil {
		return nil, err
	}
	heal, err := r.injectAll(ctx, resets...)
	if err != nil {
		return nil, err
	}
	if err := r.resumeToNext(ctx, never); err != nil {
		return heal, err
	}
	if err := heal(context.WithoutCancel(ctx)); err != nil {
		return heal, err
	}
	r.span.From = r.bed.since()
	return r.injectAll(ctx, fault.Failover(r.bed.Rig))
}
