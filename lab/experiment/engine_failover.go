package experiment

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"oversell/lab/fault"
	"oversell/lab/rig"
)

// engineLease is longer than a fail-over takes, or the end of the lease would be the cause.
const engineLease = 20 * time.Second

// onTopology selects the locks on the single Redis. The servers of Redlock are not part of a topology.
func onTopology(c Card) bool { return c.Locker && slices.Contains(c.Backends, "redis") }

// failoverSentinel and failoverCluster let the servers themselves replace a master that has not
// replicated the lock: Sentinel, or the other masters of the cluster.
func failoverSentinel() Experiment {
	return engineFailover("failover-sentinel", rig.RedisSentinel, "Sentinel replaces a Redis master that has not replicated the lock")
}

func failoverCluster() Experiment {
	return engineFailover("failover-cluster", rig.RedisCluster, "a Redis cluster replaces a master that has not replicated the lock")
}

func engineFailover(hazard string, topology rig.Topology, title string) Experiment {
	var masters *fault.Masters
	var resume fault.Heal
	sched := schedule{
		step: "writing", contenderParams: wait(engineLease / 2),
		prepare: func(ctx context.Context, r *run) (err error) {
			masters = fault.MastersOf(r.bed.Rig)
			resume, err = masters.Unreplicated().Inject(ctx)
			return err
		},
		inject: func(ctx context.Context, r *run) (fault.Heal, error) {
			heal, err := r.injectAll(ctx, masters.Replace(fmt.Sprintf("stock:%d", r.participants[0].product)))
			if err != nil {
				return nil, errors.Join(err, resume(context.WithoutCancel(ctx)))
			}
			return heal, r.bed.Rig.AwaitReady(ctx)
		},
	}
	carryOut := sched.run
	if topology == rig.RedisCluster { // the keys of two strategies may be on two masters
		carryOut = sched.inGroups(Subject.Name)
	}
	return Experiment{
		Hazard: hazard, Title: title, Shows: "the key is lost, and there are two holders", ClaimedAs: "failover",
		Applies: onTopology, Fenced: true,
		Lab: func(cfg rig.Config) rig.Config {
			cfg.RedisTopology, cfg.Redis, cfg.ZookeeperServers, cfg.EtcdServers = topology, 1, 0, 0
			cfg.RedisReplica, cfg.Clocks, cfg.Proxied, cfg.Nginx = false, false, false, false
			cfg.ReplicaArgs = []string{"--lease", engineLease.String(), "--conns", "96"}
			return cfg
		},
		run: carryOut,
	}
}
