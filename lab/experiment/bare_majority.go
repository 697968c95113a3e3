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
		Hazard: "bare-majority", Title: "one of a bare majority of Redis loses its data", Shows: "another majority grants the lock again, and there are two holders",
		Applies: claimedOrOnTrial("bare-majority", "redlock"), Fenced: true,
		perform: procedure{
			step: "asked", thenAt: "writing", holderParams: wait(2 * Lease), contenderParams: wait(grantBound), unrenewed: wait(Lease / 2),
			prepare: cutReplication, inject: loseBareMajority,
			lapse: api.Text{
				EN: "The holder had the lock on three of five Redis. One of them lost it, and a new majority granted it to the contender.",
				ZH: "持锁者只在五个 Redis 中的三个上有锁。其中一个丢失了锁，竞争者又得到了多数。",
			},
		}.inGroups(Subject.Name),
	}
}

// loseBareMajority ends the holder's connections to redis-4 and redis-5 while it acquires the lock,
// and then fails redis-1 over to its replica, which lacks the lock. Not fault.Cut: some libraries wait
// for a server that hangs until the lease has ended, and acquire nothing.
func loseBareMajority(ctx context.Context, r *round) (fault.Heal, error) {
	var resets []fault.Fault
	for _, server := range []string{"redis-4", "redis-5"} {
		link, err := r.bed.Rig.Link(name(r.on[holder]), server)
		if err != nil {
			return nil, err
		}
		resets = append(resets, fault.Reset(link))
	}
	heal, err := r.injectAll(ctx, resets...)
	if err != nil {
		return nil, err
	}
	if err := r.resumeToNext(ctx, func() bool { return false }); err != nil {
		return heal, err
	}
	if err := heal(context.WithoutCancel(ctx)); err != nil {
		return heal, err
	}
	r.span.From = r.bed.since()
	return r.injectAll(ctx, fault.Failover(r.bed.Rig))
}
