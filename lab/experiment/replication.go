package experiment

import (
	"context"
	"slices"
	"sync"
	"time"

	"oversell/api"
	"oversell/lab/fault"
	"oversell/lab/history"
	"oversell/lab/rig"
)

// galera lets the holder write to one node of a cluster, and the contender to the other node
// (tutorial 1.6.3: locks fail in a cluster). Row locks are local to a node. If two commits
// conflict, the nodes roll back the second commit with error 1213.
func galera() Experiment {
	e := onTwoNodes(rig.Galera)
	e.Hazard = "galera"
	e.Title = api.Text{EN: "two nodes of a Galera cluster", ZH: "Galera 集群的两个节点"}
	e.Shows = api.Text{
		EN: "a row lock on one node, and the commit of the other node rolls its holder back",
		ZH: "一个节点上的行锁，因另一个节点的提交而失效",
	}
	e.inject = func(_ context.Context, r *round) (fault.Heal, error) {
		r.span.What, r.span.Who = "two nodes", "mysql, mysql-2"
		return r.bed.Rig.AwaitEven, nil
	}
	e.after = func(ctx context.Context, r *round) error {
		if err := r.bed.Rig.AwaitEven(ctx); err != nil {
			return err
		}
		return sellAgain(ctx, r)
	}
	return e
}

// twoMasters delays the replication between two masters until the last sale has ended.
func twoMasters() Experiment {
	e := onTwoNodes(rig.TwoMasters)
	e.Hazard = "two-masters"
	e.Title = api.Text{EN: "two masters, and a lag between them", ZH: "两个主节点，之间有延迟"}
	e.Shows = api.Text{EN: "each node sells what the other node has sold", ZH: "每个节点都卖掉对方已卖的"}
	e.inject = holdReplication("mysql, mysql-2")
	return e
}

// contenderWait limits the wait for the stopped holder's lock. A sale itself takes milliseconds.
const contenderWait = 2 * time.Second

// onTwoNodes lets the holder write to node A and the contender to node B. If the lock rejects the
// contender, the contender tries again after the holder's sale, which node B may lack.
func onTwoNodes(database rig.Database) Experiment {
	return Experiment{
		Group: stockElsewhere, Applies: trustsMySQL, Lab: labOf(database),
		step: "writing", twoNodes: true, contenderParams: wait(contenderWait),
		healLate: true, after: sellAgain, explain: acrossNodes,
	}
}

// staleRead reads the stock at a follower (read-write split, tutorial 1.6.3). The follower receives
// the holder's sale only after the contender's sale, so a lock does not help.
func staleRead() Experiment {
	return Experiment{
		Hazard: "stale-read", Group: stockElsewhere, Applies: trustsMySQL, Lab: labOf(rig.DelayedReads),
		Title: api.Text{EN: "reads go to a follower that lags behind", ZH: "从有延迟的从节点读取"},
		Shows: api.Text{
			EN: "one sale after the other, and the second sells what the first has sold",
			ZH: "先后两次销售，第二次又卖掉第一次已卖的",
		},
		step: "writing", contenderParams: wait(contenderWait), inject: sellUnreplicated,
		explain: func(result *Result, _ *participant) {
			if result.Invariant == Conservation {
				result.Why = api.Joined(result.Why, api.Text{
					EN: "The contender read at the follower, which had not received the sale.", ZH: "竞争者从从节点读取，而从节点还没有收到那次销售。",
				})
			}
		},
	}
}

// holdReplication stops replication on nodes. The heal waits until both nodes have the same data.
func holdReplication(nodes string) func(context.Context, *round) (fault.Heal, error) {
	return func(ctx context.Context, r *round) (fault.Heal, error) {
		release, err := r.bed.Rig.HoldReplication(ctx)
		if err != nil {
			return nil, err
		}
		r.span.What, r.span.Who = "replication held", nodes
		return func(ctx context.Context) error {
			if err := release(ctx); err != nil {
				return err
			}
			return r.bed.Rig.AwaitEven(ctx) // the remaining stock is read at the follower, too
		}, nil
	}
}

func sellUnreplicated(ctx context.Context, r *round) (fault.Heal, error) {
	heal, err := holdReplication("mysql-2")(ctx, r)
	if err != nil {
		return nil, err
	}
	if err := r.bed.replica(r.on[holder]).ResumeAll(ctx); err != nil {
		return heal, err
	}
	r.await(holder)
	return heal, nil
}

// trustsMySQL selects strategies that rely on MySQL alone, and for comparison redis and zk.
func trustsMySQL(c Card) bool {
	return c.ID == "redis" || c.ID == "zk" || c.Scope != api.ScopeProcess && slices.Equal(c.Backends, []string{"mysql"})
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

func sellAgain(ctx context.Context, r *round) error {
	var again sync.WaitGroup
	for _, p := range r.participants {
		if p.ops[contender].Outcome == history.Refused {
			again.Go(func() { r.buy(ctx, p, observer, wait(grantBound)) })
		}
	}
	again.Wait()
	return nil
}

// acrossNodes appends to Why the answer that the contender's second attempt got. It changes the
// verdict safe to wasteful if an owner lost its row lock before the commit.
func acrossNodes(result *Result, p *participant) {
	if isClosed(p.ended[observer]) {
		again := Answer(p.ops[observer])
		result.Why = api.Joined(result.Why, api.Textf("Its second attempt: %[1]s.", "第二次尝试：%[2]s。", again.EN, again.ZH))
		if result.Invariant == Conservation {
			result.Why = api.Joined(result.Why, api.Text{
				EN: "The lock kept the order, but node B had not received the sale on node A.", ZH: "锁保证了先后顺序，但节点 B 还没有收到节点 A 上的销售。",
			})
		}
	}
	if result.Verdict == api.Safe && grantedAnew(result.Recording.Events) > 0 {
		result.Verdict = api.Wasteful
		result.Why = api.Joined(result.Why, api.Text{
			EN: "The row lock excluded nobody: the commit on the other node rolled its holder back, which then tried again.",
			ZH: "行锁没有排除任何请求：另一个节点的提交使持锁者回滚，持锁者随后重试。",
		})
	}
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
