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

// engineLease is so long that a fail-over ends before the holder's first renewal, at a third of it, even on
// a busy machine. After a rejected renewal, the holder would not write, and would seem safe.
const engineLease = time.Minute

// engineWait limits the contender's wait for the lock, and the time for a fail-over.
const engineWait = 10 * time.Second

// onTopology selects the locks on the single Redis. The servers of Redlock are not part of a topology.
func onTopology(c Card) bool { return c.Locker && slices.Contains(c.Backends, "redis") }

// failoverSentinel and failoverCluster let the servers themselves replace a master that has not
// replicated the lock: Sentinel, or the other masters of the cluster.
func failoverSentinel() Experiment {
	return engineFailover("failover-sentinel", rig.RedisSentinel, "Sentinel replaces a Redis master that has not replicated the lock")
}

func failoverCluster() Experiment {
	e := engineFailover("failover-cluster", rig.RedisCluster, "a Redis cluster replaces a master that has not replicated the lock")
	// Its two locks may be on two masters. Then one fail-over loses one lock, and the other keeps the
	// contender out. So the verdict would depend on the slots of the keys.
	e.Applies = func(c Card) bool { return onTopology(c) && c.ID != "redis-multi" }
	return e
}

func engineFailover(hazard string, topology rig.Topology, title string) Experiment {
	var masters *fault.Masters
	var resume fault.Heal
	proc := procedure{
		contenderParams: wait(engineWait),
		soldBefore:      true,
		prepare: func(ctx context.Context, r *round) (err error) {
			masters = fault.MastersOf(r.bed.Rig)
			resume, err = masters.Unreplicated().Inject(ctx)
			return err
		},
		inject: func(ctx context.Context, r *round) (fault.Heal, error) {
			heal, err := r.injectAll(ctx, masters.Replace(fmt.Sprintf("stock:%d", r.participants[0].product)))
			if err != nil {
				return nil, errors.Join(err, resume(context.WithoutCancel(ctx)))
			}
			return heal, r.bed.Rig.AwaitReady(ctx)
		},
	}
	return Experiment{
		Hazard: hazard, Title: title, Shows: "the key is lost, and there are two holders", ClaimedAs: "failover",
		Applies: onTopology, Fenced: true, Lab: engineLab(topology, 0, engineLease),
		perform: func(ctx context.Context, r *round) ([]Result, error) {
			ordered := proc.inOrder(r.seed)
			if topology == rig.RedisCluster { // the keys of two strategies may be on two masters
				return ordered.inGroups(Subject.Name)(ctx, r)
			}
			return ordered.perform(ctx, r)
		},
	}
}

// engineLab returns a lab with MySQL and one topology of Redis.
func engineLab(topology rig.Topology, minReplicas int, lease time.Duration) func(rig.Config) rig.Config {
	return func(cfg rig.Config) rig.Config {
		cfg.RedisTopology, cfg.RedisMinReplicas = topology, minReplicas
		cfg.Redis, cfg.ZookeeperServers, cfg.EtcdServers = 1, 0, 0
		cfg.RedisReplica, cfg.Clocks, cfg.Proxied, cfg.Nginx = false, false, false, false
		cfg.ReplicaArgs = []string{"--lease", lease.String(), "--conns", "96"}
		return cfg
	}
}

// inOrder lets the seed choose at which steps holder and contender stop. Twelve seeds in a row have all
// orders. A fence must hold in each of them.
func (s procedure) inOrder(seed int64) procedure {
	s.step = []string{"writing", "read", "granted"}[uint64(seed)%3]               //nolint:gosec // any number will do
	s.contenderStops = []string{"", "granted", "read", "writing"}[uint64(seed)%4] //nolint:gosec // any number will do
	return s
}
