package experiment

import (
	"context"
	"errors"
	"slices"
	"time"

	"oversell/api"
	"oversell/lab/fault"
	"oversell/lab/history"
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
	e := engineFailover(rig.RedisSentinel)
	e.Hazard = "failover-sentinel"
	e.Title = api.Text{
		EN: "Sentinel replaces a Redis master that has not replicated the lock",
		ZH: "主节点在复制锁之前宕机，由 Sentinel 换主",
	}
	return e
}

func failoverCluster() Experiment {
	e := engineFailover(rig.RedisCluster)
	e.Hazard = "failover-cluster"
	e.Title = api.Text{
		EN: "a Redis cluster replaces a master that has not replicated the lock",
		ZH: "主节点在复制锁之前宕机，由 Redis 集群自己换主",
	}
	e.group = Subject.Name // the keys of two strategies may be on two masters
	// The locks of one sale may be on two masters. Then one fail-over loses one lock, and the other keeps the
	// contender out. So the verdict would depend on the slots of the keys.
	e.Applies = func(c Card) bool { return onTopology(c) && !c.SeveralLocks }
	return e
}

func engineFailover(topology rig.Topology) Experiment {
	var masters *fault.Masters
	var resume fault.Heal
	return Experiment{
		Group: topologies, Shows: keyIsLost(), ClaimedAs: "failover",
		Applies: onTopology, Fenced: true, Lab: engineLab(topology, 0, engineLease), lease: engineLease,
		contenderParams: wait(engineWait), vary: inOrder, soldBefore: true, judge: mustBeReached,
		prepare: func(ctx context.Context, r *round) (err error) {
			masters = fault.MastersOf(r.bed.Rig)
			if err := r.awaitLocks(ctx, ""); err != nil { // a client that connects only later might ask a stopped replica
				return err
			}
			resume, err = masters.Unreplicated().Inject(ctx)
			return err
		},
		stocked: func(ctx context.Context, _ *round) error { return masters.Observe(ctx) },
		inject: func(ctx context.Context, r *round) (fault.Heal, error) {
			heal, err := r.injectAll(ctx, masters.Replace())
			if err != nil {
				return nil, errors.Join(err, resume(context.WithoutCancel(ctx)))
			}
			return heal, r.bed.Rig.AwaitReady(ctx)
		},
	}
}

// engineLab returns a lab with MySQL and one topology of Redis.
func engineLab(topology rig.Topology, minReplicas int, lease time.Duration) func(rig.Config) rig.Config {
	return func(cfg rig.Config) rig.Config {
		cfg = labOf(rig.OneServer)(cfg)
		cfg.RedisTopology, cfg.RedisMinReplicas = topology, minReplicas
		cfg.ReplicaArgs = append(slices.Clone(cfg.ReplicaArgs), "--lease", lease.String()) // the last one counts
		return cfg
	}
}

// mustBeReached finds nothing about a lock on trial that did not find the new master: an error kept the contender out.
func mustBeReached(p *participant) *finding {
	if !p.Card.onTrial() || p.ops[contender].Reason != history.Unavailable {
		return nil
	}
	return &finding{api.Inconclusive, "", api.Textf(
		"The lock of the contender was unavailable for %[1]v, so nothing shows that it kept the contender out.",
		"竞争者的锁在 %[1]v 内一直不可用，所以看不出是不是锁挡住了它。", engineWait)}
}

// inOrder lets the seed choose at which steps holder and contender stop. Twelve seeds in a row have all
// orders. A fence must hold in each of them.
func inOrder(e Experiment, seed int64) Experiment {
	e.step = by(seed, "writing", "read", "granted")
	e.contenderStops = by(seed, "", "granted", "read", "writing")
	return e
}

// holderInOrder lets the seed choose at which step the holder stops. The contender does not stop.
func holderInOrder(e Experiment, seed int64) Experiment {
	e = inOrder(e, seed)
	e.contenderStops = ""
	return e
}
