package experiment

import (
	"context"
	"fmt"
	"slices"
	"time"

	"oversell/api"
	"oversell/lab/backend"
	"oversell/lab/fault"
)

func minorityLoss() Experiment {
	rejected := stalled(api.Text{
		EN: "Less than half of the nodes were dead, but a request was rejected.",
		ZH: "宕机的节点不到一半，但有请求被拒绝。",
	})
	return Experiment{
		Hazard: "minority-loss", Group: serversFail, Applies: onMajorities,
		Title: api.Text{
			EN: "2 of 5 Redis and the leaders of 3 ZooKeeper and 3 etcd die",
			ZH: "5 个 Redis 宕机 2 个，3 个 ZooKeeper 与 3 个 etcd 的领导者宕机",
		},
		Shows: api.Text{EN: "sales continue", ZH: "业务照常进行"},
		step:  "asked", contenderParams: wait(grantBound), judge: mustSell(rejected, holder, contender),
		inject: func(ctx context.Context, r *round) (fault.Heal, error) {
			at := r.bed.Rig.Addresses()
			zookeeper, err := leader(ctx, "zookeeper", at.Zookeeper, backend.ZooKeeperLeads)
			if err != nil {
				return nil, err
			}
			etcd, err := leader(ctx, "etcd", at.Etcd, backend.EtcdLeads)
			if err != nil {
				return nil, err
			}
			return killAndResume(zookeeper, etcd, "redis-4", "redis-5")(ctx, r)
		},
	}
}

// majorityLoss kills more than half of the nodes. No request may acquire the lock afterwards.
func majorityLoss() Experiment {
	return Experiment{
		Hazard: "majority-loss", Group: serversFail, Applies: onMajorities,
		Title: api.Text{
			EN: "3 of 5 Redis, 2 of 3 ZooKeeper and 2 of 3 etcd die",
			ZH: "5 个 Redis 宕机 3 个，3 个 ZooKeeper 宕机 2 个，3 个 etcd 宕机 2 个",
		},
		Shows: api.Text{EN: "requests are rejected, and no update is lost", ZH: "拒绝服务，但不会超卖"},
		step:  "asked", contenderParams: wait(time.Second),
		silences: true, inject: killAndResume("redis-3", "redis-4", "redis-5", "zookeeper-2", "zookeeper-3", "etcd-2", "etcd-3"),
	}
}

func onMajorities(c Card) bool {
	return claimedOrOnTrial("minority-loss", "redlock", "zookeeper", "etcd")(c)
}

func killAndResume(servers ...string) func(context.Context, *round) (fault.Heal, error) {
	return func(ctx context.Context, r *round) (fault.Heal, error) {
		heal, err := r.injectInto(ctx, fault.Kill, slices.DeleteFunc(slices.Clone(servers), func(name string) bool {
			_, err := r.bed.Rig.Server(name) // the lab of a lock on trial has only the ensembles of its backends
			return err != nil
		})...)
		if err != nil {
			return nil, err
		}
		return heal, r.bed.replica(r.on[holder]).ResumeAll(ctx)
	}
}

// leader returns the name of the leader of an ensemble of this kind, or "" if one server is no ensemble.
func leader(
	ctx context.Context, kind string, servers []string, leads func(context.Context, string) (bool, error),
) (string, error) {
	if len(servers) == 1 {
		return "", nil
	}
	for i, addr := range servers {
		if yes, err := leads(ctx, addr); yes || err != nil {
			return fmt.Sprintf("%s-%d", kind, i+1), err
		}
	}
	return "", fmt.Errorf("no %s server is the leader", kind)
}
