package experiment

import (
	"cmp"
	"context"
	"errors"

	"oversell/api"
	"oversell/lab/fault"
	"oversell/lab/rig"
)

// failover promotes a Redis replica that lacks the lock and the counter of fencing tokens. So the
// new master issues the same token again. Only MySQL's row can reject it, because the row keeps the
// highest registered token.
func failover() Experiment {
	return Experiment{
		Hazard: "failover", Group: serversFail, Basic: true, Fenced: true,
		Title:   api.Text{EN: "the Redis master dies before it has replicated the lock", ZH: "主节点在复制锁之前宕机"},
		Shows:   keyIsLost(),
		Applies: func(c Card) bool { return c.uses("redis") },
		step:    "writing", contenderParams: wait(grantBound), unrenewed: wait(Lease / 2),
		prepare: cutReplication, inject: failOver, judge: mustRise,
		// Strategies with stock in Redis are on their own: the cut from MySQL would end connections
		// that hold the others' locks.
		group: func(s Subject) string { return "stock in " + cmp.Or(s.Card.Stock, "mysql") },
	}
}

// mustRise finds that the fences of the new master are below those of the row. No request can sell until they have
// risen above it.
func mustRise(p *participant) *finding {
	if !p.Fenced || p.ops[contender].Reason != string(api.Fenced) {
		return nil
	}
	return stalled(api.Text{
		EN: "After the fail-over, the fences began below those that the row had seen: it rejected the next holder, though no other request held the lock.",
		ZH: "主从切换之后，栅栏号比数据行见过的还小：虽然没有别的请求持锁，数据行仍拒绝了下一个持锁者。",
	})
}

func keyIsLost() api.Text {
	return api.Text{EN: "the key is lost, and there are two holders", ZH: "键丢失，出现两个持锁者"}
}

func cutReplication(_ context.Context, r *round) error {
	_, err := r.bed.cutReplication()
	return err
}

// cutReplication keeps later writes to redis-1 from its replica. The promoted replica lacks them.
func (bed *Testbed) cutReplication() (*rig.Link, error) {
	link, err := bed.Rig.Link("redis-1-replica", "redis-1")
	if err == nil {
		err = link.Cut()
	}
	return link, err
}

func failOver(ctx context.Context, r *round) (fault.Heal, error) {
	// If the stock is in Redis, one sale must not reach the replica or MySQL before the failover.
	var late []fault.Fault
	if r.participants[0].Card.Stock == "redis" {
		late = cuts(r.bed.links("", "mysql"))
	}
	heal, err := r.injectAll(ctx, late...)
	if err != nil {
		return nil, err
	}
	r.sendAndAwait(ctx, observer, wait(0))
	failBack, err := r.injectAll(ctx, fault.Failover(r.bed.Rig))
	return failBack, errors.Join(err, heal(context.WithoutCancel(ctx)))
}
