package experiment

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"oversell/api"
	"oversell/lab/fault"
)

func cutoff() Experiment {
	return Experiment{
		Hazard: "cutoff", Group: linkFails, Basic: true, Fenced: true,
		Applies: func(c Card) bool {
			return locksOn("redis", "zookeeper", "etcd", "postgres")(c) || c.onTrial() && c.Renews && c.lockService() == "mysql"
		},
		Title: api.Text{EN: "the holder is cut off from the lock service", ZH: "持锁者与锁服务断开"},
		Shows: api.Text{EN: "its lease expires; does it still write?", ZH: "租期已到，它还会写入吗？"},
		step:  "read", contenderParams: wait(grantBound), healLate: true,
		group: func(s Subject) string { return fmt.Sprint(slices.Contains(s.Card.Backends, "redlock")) },
		inject: func(ctx context.Context, r *round) (fault.Heal, error) {
			if r.participants[0].Card.onTrial() && r.participants[0].Card.lockService() == "mysql" {
				return r.withholdRenewals()
			}
			if slices.Contains(r.participants[0].Card.Backends, "redlock") {
				return r.cutOffMajority(ctx)
			}
			return cutOff("redis", "zookeeper", "etcd", "postgres", "pgbouncer")(ctx, r)
		},
	}
}

// cutOffMajority leaves the holder two of five Redis, which is not enough for a renewal.
func (r *round) cutOffMajority(ctx context.Context) (fault.Heal, error) {
	faults, err := r.onLinks(fault.Cut, holder, "redis-1", "redis-2", "redis-3")
	if err != nil {
		return nil, err
	}
	return r.injectAll(ctx, faults...)
}

// withholdRenewals loses all that the holder's replica sends to MySQL until the contender has its answer: while the
// holder is stopped, only its lock sends there. The sale needs the connection, so it is healed before.
func (r *round) withholdRenewals() (fault.Heal, error) {
	held := &heldCommands{nth: 1}
	r.healLate = false
	r.span.What, r.span.Who = "cut from mysql", name(r.on[holder])
	err := held.arm(r, holder)
	return func(ctx context.Context) error {
		if !held.sawCommand() {
			r.missed = errors.New("the holder sent no command")
		}
		return restore(held.links)(ctx)
	}, err
}

// sessionExpiry cuts the holder off until its ZooKeeper session or its etcd lease expires.
func sessionExpiry() Experiment {
	return Experiment{
		Hazard: "session-expiry", Group: linkFails, Applies: locksOn("zookeeper", "etcd"), Fenced: true,
		Title: api.Text{EN: "the holder's session expires", ZH: "持锁者的会话过期"},
		Shows: api.Text{EN: "its nodes are deleted; does the holder notice?", ZH: "它的节点被删除，它能发现吗？"},
		step:  "read", contenderParams: wait(grantBound), healLate: true, inject: cutOff("zookeeper", "etcd"),
	}
}

func cutOff(services ...string) func(context.Context, *round) (fault.Heal, error) {
	return func(ctx context.Context, r *round) (fault.Heal, error) {
		links := r.bed.links(name(r.on[holder]), services...)
		if len(links) == 0 {
			return nil, fmt.Errorf("no link from %s to %v", name(r.on[holder]), services)
		}
		return r.injectAll(ctx, cuts(links)...)
	}
}
