package experiment

import (
	"fmt"
	"slices"
	"time"

	"oversell/api"
	"oversell/lab/history"
	"oversell/lab/player"
	"oversell/lab/rig"
)

// This file has the hazards of a lab with Sentinels, with a cluster of Redis, or with several databases.

// engineLease is so long that a fail-over ends before the holder's first renewal, at a third of it, even on
// a busy machine. After a rejected renewal, the holder would not write, and would seem safe.
const engineLease = time.Minute

// engineLab returns a lab with MySQL and one topology of Redis.
func engineLab(topology rig.Topology, minReplicas int, lease time.Duration) func(rig.Config) rig.Config {
	return func(cfg rig.Config) rig.Config {
		cfg = labOf(rig.OneServer)(cfg)
		cfg.RedisTopology, cfg.RedisMinReplicas = topology, minReplicas
		cfg.ReplicaArgs = append(slices.Clone(cfg.ReplicaArgs), "--lease", lease.String()) // the last one counts
		return cfg
	}
}

// labOf configures a small lab with this database, without the servers of other experiments.
func labOf(database rig.Database) func(rig.Config) rig.Config {
	return func(cfg rig.Config) rig.Config {
		cfg.Database = database
		cfg.Redis, cfg.Zookeeper, cfg.Etcd = 1, 1, 1
		cfg.RedisReplica, cfg.Clocks, cfg.Proxied, cfg.Nginx = false, false, false, false
		return cfg
	}
}

// onTopology selects the locks on the single Redis. The servers of Redlock are not part of a topology.
func onTopology(c api.Card) bool { return c.Locker && slices.Contains(c.Backends, "redis") }

// inEachOrder returns n plans with different steps for holder and contender: 12 seeds in a row have each pair of steps. A
// fence must hold in each plan. The form has the step of the holder, then the step of the contender and the last moves.
func inEachOrder(n int64, form func(seed int64) string) (plans []string) {
	for seed := range n {
		holder := by(seed, "writing", "read", "granted")
		ends := "B ends, A resumes"
		if at := by(seed, "", "granted", "read", "writing"); at != "" {
			ends = "B stops, A resumes, A ends, B resumes"
			plans = append(plans, fmt.Sprintf(form(seed), holder, " at "+at, ends))
			continue
		}
		plans = append(plans, fmt.Sprintf(form(seed), holder, "", ends))
	}
	return plans
}

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
	// The locks of one sale may be on two masters. Then one fail-over loses one lock, and the other keeps the
	// contender out. So the verdict would depend on the slots of the keys.
	e.Applies = func(c api.Card) bool { return onTopology(c) && !c.SeveralLocks }
	return e
}

func engineFailover(topology rig.Topology) Experiment {
	return Experiment{
		Group: topologies, Shows: keyIsLost(), ClaimedAs: "failover",
		Applies: onTopology, Fenced: true, Lab: engineLab(topology, 0, engineLease), lease: engineLease, rule: mustBeReached,
		Plans: inEachOrder(12, func(int64) string {
			return "replication stops, A reads, B reads, A sells at %s, redis fails over, B sells for 10 s%s, %s"
		}),
	}
}

// mustBeReached makes a result inconclusive if the program of a lock on trial did not find the new master: an error, and
// not the lock, kept the contender out.
func mustBeReached(p *played) *finding {
	if !p.Card.OnTrial() || p.Ops[contender].Reason != history.Unavailable {
		return nil
	}
	return &finding{api.Inconclusive, "", api.Textf(
		"The lock of the contender was unavailable for %[1]v, so nothing shows that it kept the contender out.",
		"竞争者的锁在 %[1]v 内一直不可用，所以看不出是不是锁挡住了它。", player.TopologyWait)}
}

// splitBrain makes two masters of one Redis, each with its own clients: the old master, and the replica that Sentinel has
// promoted. Holder and contender are on different sides, and sell from the same row of MySQL. The seed chooses the sides;
// 24 seeds in a row have each pair of steps with each choice of sides.
func splitBrain() Experiment {
	return Experiment{
		Hazard: "split-brain", Group: split, ClaimedAs: "failover", Applies: onTopology, Fenced: true,
		Lab: engineLab(rig.RedisSentinel, 0, engineLease), lease: engineLease, rule: mustBeReached,
		Plans: inEachOrder(24, func(seed int64) string {
			return by(seed>>2, "A", "B") + " stays with the old master, A sells at %s, B sells for 10 s%s, %s, A ends, B ends"
		}),
		Title: api.Text{
			EN: "Sentinel promotes a replica, while the old master goes on serving its clients",
			ZH: "Sentinel 提升了从节点，旧主节点仍在为它那一侧的客户端服务（脑裂）",
		},
		Shows: api.Text{EN: "two masters, and a holder on each of them", ZH: "两个主节点，各有一个持锁者"},
	}
}

// minReplicas is splitBrain with a master that requires a replica: the old one rejects the contender.
func minReplicas() Experiment {
	return Experiment{
		Hazard: "min-replicas", Group: split, Default: api.Protects, Applies: onTopology, Fenced: true,
		Lab: engineLab(rig.RedisSentinel, 1, engineLease), lease: engineLease,
		Plans: atEachStep("B stays with the old master, A sells at %s, B sells try, B ends, A resumes, A ends", "writing", "read", "granted"),
		Title: api.Text{EN: "as split-brain, with min-replicas-to-write 1", ZH: "脑裂，min-replicas-to-write 为 1"},
		Shows: api.Text{EN: "the old master rejects the contender", ZH: "旧主节点拒绝竞争者"},
		rule: func(p *played) *finding {
			if p.Ops[contender].Outcome == history.OK {
				return &finding{api.Broken, MutualExclusion, api.Text{
					EN: "The old master has granted the lock without a replica.",
					ZH: "旧主节点没有从节点，仍然发出了锁。",
				}}
			}
			return mustSell(stalled(api.Text{
				EN: "The holder, which is on the side of the new master, did not sell.",
				ZH: "持锁者在新主节点一侧，却没有卖出。",
			}), holder)(p)
		},
	}
}

// atEachStep returns a plan for each step at which the holder stops.
func atEachStep(form string, steps ...string) (plans []string) {
	for _, step := range steps {
		plans = append(plans, fmt.Sprintf(form, step))
	}
	return plans
}

// splitRenewal splits Redis while a lock is held that was replicated before. On the old master, the lease is renewed; on
// the new master, it ends. So the replication of each lock, as by WAIT, does not prevent this. The holder stops before
// its last check of the lock: after that, nothing but a fence could stop its write.
func splitRenewal() Experiment {
	return Experiment{
		Hazard: "split-renewal", Group: splitLater, Fenced: true, Applies: func(c api.Card) bool { return onTopology(c) && c.Renews },
		Default: api.Breaks, Lab: engineLab(rig.RedisSentinel, 0, player.Lease),
		Plans: atEachStep("A sells at %s, A stays with the old master, B sells, B ends, A resumes, A ends", "read", "granted"),
		Title: api.Text{EN: "as split-brain, with a lock that was replicated before", ZH: "脑裂之前锁已复制到从节点"},
		Shows: api.Text{EN: "the old master renews the lock, on the new one it expires", ZH: "旧主节点继续给锁续期，新主节点上的锁到期"},
		rule: mustSell(stalled(api.Text{
			EN: "The contender did not get the lock on the new master.",
			ZH: "竞争者在新主节点上没有拿到锁。",
		}), contender),
	}
}

// splitRenewalMin is splitRenewal with a master that requires a replica: the old one rejects the renewal.
func splitRenewalMin() Experiment {
	e := splitRenewal()
	e.Hazard, e.Default, e.ClaimedAs, e.Lab = "min-replicas-renewal", api.Silent, "cutoff", engineLab(rig.RedisSentinel, 1, player.Lease)
	e.Title = api.Text{EN: "as split-renewal, with min-replicas-to-write 1", ZH: "脑裂之前锁已复制，min-replicas-to-write 为 1"}
	e.Shows = api.Text{EN: "the renewal is rejected, and the holder stops in time", ZH: "续期被拒绝，持锁者及时停止"}
	return e
}

// keepLock returns an experiment in which the contender must not get the holder's lock in spite of a fault,
// and a successor must get it after the holder's release.
func keepLock(topology rig.Topology) Experiment {
	return Experiment{
		Group: topologies, Default: api.Protects, Applies: onTopology, Fenced: true, Lab: engineLab(topology, 0, engineLease), lease: engineLease,
		rule: func(p *played) *finding {
			for _, part := range []int{contender, observer} {
				if p.Ops[part].Outcome == history.OK {
					return &finding{api.Broken, MutualExclusion, api.Text{
						EN: "A request sold during the fault, while the holder had the lock.",
						ZH: "故障期间，持锁者还持有锁，另一个请求却卖出了。",
					}}
				}
			}
			return mustSell(stalled(api.Text{
				EN: "The holder did not sell, or its successor did not within 10 s.",
				ZH: "持锁者没有卖出，或者后继者在 10 秒内没有卖出。",
			}), holder, successor)(p)
		},
	}
}

// quorumLoss kills the master when only one Sentinel is left. Nothing is sold until the other Sentinels are
// back. Then the new master has the lock, which had been replicated: the contender does not get it.
func quorumLoss() Experiment {
	e := keepLock(rig.RedisSentinel)
	e.Hazard = "quorum-loss"
	e.Title = api.Text{EN: "two of three Sentinels die, then the Redis master", ZH: "3 个 Sentinel 宕机 2 个，然后 Redis 主节点宕机"}
	e.Shows = api.Text{EN: "sales stop, and go on when the Sentinels are back", ZH: "停止销售；Sentinel 恢复之后继续，锁没有丢失"}
	for _, left := range []string{"1", "2", "3"} {
		e.Plans = append(e.Plans, atEachStep("A sells at %s, all Sentinels die but "+left+", C sells try, C ends, the Sentinels start, B sells for 0.5 s, B ends, A resumes, A ends, B sells for 10 s, B ends",
			"writing", "read", "granted")...)
	}
	return e
}

// resharding moves the slot of the held lock to another master of the cluster. The contender tries at one
// stage of this move, and the holder releases at the same stage or a later one. Until the slot has moved, an acquisition may
// get TRYAGAIN: the lock is missing, its counter is not. Ten seeds in a row have all pairs of stages.
func resharding() Experiment {
	e := keepLock(rig.RedisCluster)
	e.Hazard = "resharding"
	e.Title = api.Text{
		EN: "a Redis cluster moves the slot of a held lock to another master",
		ZH: "持锁期间，Redis 集群把锁所在的槽迁移到另一个主节点",
	}
	e.Shows = api.Text{EN: "the lock moves with its slot", ZH: "锁随槽一起迁移"}
	for seed := 0; len(e.Plans) < 30; {
		for try := 1; try <= 4; try++ {
			for release := try; release <= 4; release++ {
				e.Plans = append(e.Plans, fmt.Sprintf(
					"A sells at %s, the slot moves to stage %d, B sells for 0.5 s, B ends, the slot moves to stage %d, A resumes, A ends, the slot moves to stage 4, B sells for 10 s, B ends",
					by(int64(seed), "writing", "read", "granted"), try, release))
				seed++
			}
		}
	}
	return e
}

// galera lets the holder write to one node of a cluster, and the contender to the other node
// (tutorial 1.6.3: locks fail in a cluster). Row locks are local to a node. If two commits
// conflict, the nodes roll back the second commit with error 1213. If the lock rejects the
// contender, the contender tries again after the holder's sale, which its node may lack.
func galera() Experiment {
	return Experiment{
		Hazard: "galera", Group: stockElsewhere, Applies: trustsMySQL, Lab: labOf(rig.Galera), rule: excludesNobody,
		Plans: []string{"A sells at writing, B sells for 2 s, B ends, A resumes, A ends, B sells again, B ends"},
		Title: api.Text{EN: "two nodes of a Galera cluster", ZH: "Galera 集群的两个节点"},
		Shows: api.Text{
			EN: "a row lock on one node, and the commit of the other node rolls its holder back",
			ZH: "一个节点上的行锁，因另一个节点的提交而失效",
		},
	}
}

// twoMasters delays the replication between two masters until the last sale has ended.
func twoMasters() Experiment {
	return Experiment{
		Hazard: "two-masters", Group: stockElsewhere, Applies: trustsMySQL, Lab: labOf(rig.TwoMasters), rule: excludesNobody,
		Plans: []string{"A sells at writing, replication stops, B sells for 2 s, B ends, A resumes, A ends, B sells again, B ends"},
		Title: api.Text{EN: "two masters, and a lag between them", ZH: "两个主节点，之间有延迟"},
		Shows: api.Text{EN: "each node sells what the other node has sold", ZH: "每个节点都卖掉对方已卖的"},
		stale: api.Text{
			EN: "The lock kept the order, but node B had not received the sale on node A.", ZH: "锁保证了先后顺序，但节点 B 还没有收到节点 A 上的销售。",
		},
	}
}

// staleRead reads the stock at a follower (read-write split, tutorial 1.6.3). The follower receives
// the holder's sale only after the contender's sale, so a lock does not help.
func staleRead() Experiment {
	return Experiment{
		Hazard: "stale-read", Group: stockElsewhere, Applies: trustsMySQL, Lab: labOf(rig.DelayedReads),
		Plans: []string{"A sells at writing, replication stops, A resumes, A ends, B sells for 2 s, B ends"},
		Title: api.Text{EN: "reads go to a follower that lags behind", ZH: "从有延迟的从节点读取"},
		Shows: api.Text{
			EN: "one sale after the other, and the second sells what the first has sold",
			ZH: "先后两次销售，第二次又卖掉第一次已卖的",
		},
		stale: api.Text{
			EN: "The contender read at the follower, which had not received the sale.", ZH: "竞争者从从节点读取，而从节点还没有收到那次销售。",
		},
	}
}

// trustsMySQL selects strategies that rely on MySQL alone, and for comparison redis and zk.
func trustsMySQL(c api.Card) bool {
	return c.ID == "redis" || c.ID == "zk" || c.Scope != api.ScopeProcess && slices.Equal(c.Backends, []string{"mysql"})
}

// excludesNobody checks whether an owner lost its row lock before its commit.
func excludesNobody(p *played) *finding {
	if grantedAnew(p.Recording.Events) == 0 {
		return nil
	}
	return &finding{api.Wasteful, "", api.Text{
		EN: "The row lock excluded nobody: the commit on the other node rolled its holder back, which then tried again.",
		ZH: "行锁没有排除任何请求：另一个节点的提交使持锁者回滚，持锁者随后重试。",
	}}
}

// grantedAnew counts grants to an owner that already had the lock, and so has lost it.
func grantedAnew(events []history.Event) (n int) {
	had := map[string]bool{}
	for _, e := range events {
		if e.Step != "granted" {
			continue
		}
		if had[e.Owner] {
			n++
		}
		had[e.Owner] = true
	}
	return n
}
