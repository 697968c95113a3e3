package player

import (
	"context"
	"errors"
	"time"

	"oversell/lab/chaos"
	"oversell/lab/fault"
	"oversell/lab/history"
	"oversell/lab/rig"
)

// This file has what the player does in a lab with Sentinels, with a cluster of Redis, or with two databases.

// TopologyWait limits the contender's wait for the lock, and the time for a fail-over.
const TopologyWait = 10 * time.Second

// lag stops the replication, so that later writes do not reach the copies of the database, of the masters in a topology
// of Redis (Sentinels or a cluster), or of the single Redis.
func (p *Player) lag(ctx context.Context) (err error) {
	switch cfg := p.bed.Rig.Config(); {
	case cfg.Database != rig.OneServer:
		release, err := p.bed.Rig.HoldReplication(ctx)
		if err != nil {
			return err
		}
		nodes := "mysql, mysql-2"
		if cfg.Database == rig.DelayedReads {
			nodes = "mysql-2"
		}
		p.held = len(p.spans)
		p.spans = append(p.spans, history.Span{What: "replication held", Who: nodes, From: p.bed.Since()})
		p.catchUp = func(ctx context.Context) error {
			err := errors.Join(release(ctx), p.bed.Rig.AwaitEven(ctx)) // the remaining stock is read at the follower, too
			p.spans[p.held].To = p.bed.Since()
			return err
		}
		return nil
	case cfg.RedisTopology != rig.OneRedis:
		if err := p.bed.awaitLocks(ctx, ""); err != nil { // a client that connects only later might ask a stopped replica
			return err
		}
		p.masters = fault.MastersOf(p.bed.Rig)
		resume, err := p.masters.Unreplicated().Inject(ctx)
		if err == nil {
			p.catchUp = resume
		}
		return err
	}
	p.lagging, err = p.bed.cutReplication()
	return err
}

// beforeSales prepares the servers for the first sale. If the plan deletes locks, it clears the lock tables. In a
// topology, it notes what the masters store, so that the data of the lock are recognized later.
func (p *Player) beforeSales(ctx context.Context, plan chaos.Plan) error {
	p.sales = true
	if plan.Has(chaos.Deletes) {
		if err := p.bed.clearLockTables(ctx); err != nil {
			return err
		}
	}
	if p.masters == nil && plan.Has(chaos.SlotMoves) {
		p.masters = fault.MastersOf(p.bed.Rig)
	}
	if p.masters == nil {
		return nil
	}
	return p.masters.Observe(ctx)
}

// awaitMasters waits until the clients have found the new master.
func (p *Player) awaitMasters(ctx context.Context, m chaos.Move) error {
	switch old := ReplicaName(p.on[m.Client]); {
	case m.Do == chaos.FailsOver && p.masters != nil:
		return p.bed.Rig.AwaitReady(ctx)
	case m.Do == chaos.StaysBehind && !p.sales:
		if err := p.bed.Rig.AwaitReady(ctx, old); err != nil { // the old master may reject writes without its replica
			return err
		}
		return p.bed.awaitLocks(ctx, old)
	}
	return nil
}

// awaitLocks waits until each replica except but can add a product, which clears the locks of that product. Then the
// clients of Redis have found the new master.
func (bed *Testbed) awaitLocks(ctx context.Context, but string) (err error) {
	for n := range bed.Rig.Addresses().Replicas {
		late := Eventually(ctx, ReplicaName(n)+" clears the locks of a product", func() bool {
			if ReplicaName(n) != but {
				_, err = bed.AddProduct(ctx, n, 1)
			}
			return err == nil
		})
		if late != nil {
			return errors.Join(late, err)
		}
	}
	return nil
}

// moveSlot moves the slot of the lock up to a stage.
func (p *Player) moveSlot(ctx context.Context, stage int) (err error) {
	if p.moving == nil {
		if p.moving, err = p.masters.Reshard(ctx); err != nil {
			return err
		}
		p.struckAt = p.bed.Since()
		p.spans = append(p.spans, history.Span{What: "resharding", Who: "redis", From: p.struckAt})
	}
	err = p.moving.Advance(ctx, stage)
	if stage == fault.Reassigned {
		p.spans[len(p.spans)-1].To = p.bed.Since()
	}
	return err
}
