package experiment

import (
	"context"
	"fmt"

	"oversell/api"
	"oversell/lab/fault"
)

func cutoff() Experiment {
	return Experiment{
		Hazard: "cutoff", Group: linkFails, Basic: true, Applies: locksOn("redis", "zookeeper", "etcd", "postgres"), Fenced: true,
		Title: api.Text{EN: "the holder is cut off from the lock service", ZH: "持锁者与锁服务断开"},
		Shows: api.Text{EN: "its lease expires; does it still write?", ZH: "租期已到，它还会写入吗？"},
		step:  "read", contenderParams: wait(grantBound), healLate: true,
		inject: cutOff("redis", "zookeeper", "etcd", "postgres", "pgbouncer"),
	}
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
