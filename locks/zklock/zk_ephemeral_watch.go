package zklock

import (
	"context"
	"errors"
	"time"

	"github.com/go-zookeeper/zk"

	"oversell/api"
	"oversell/locks"
)

// EphemeralWatch locks with one ephemeral node as Ephemeral does, but each waiter watches it
// and tries again when it is deleted (document 004).
func EphemeralWatch(s *Session) locks.Locker {
	return &ephemeralWatch{singleNode{s, "/oversell/zk-ephemeral-watch/"}}
}

type ephemeralWatch struct{ singleNode }

func (l *ephemeralWatch) Acquire(ctx context.Context, r locks.Request) (*locks.Lock, error) {
	began := time.Now()
	return retry(ctx, l.session, r, began, func() (*locks.Lock, error) {
		for {
			lock, err := l.try(ctx, r, began)
			if !errors.Is(err, zk.ErrNodeExists) {
				return lock, err
			}
			// DANGER: all watch the same node. A release wakes every waiter, and all of them try
			// to make the node. One succeeds; the rest were woken in vain.
			calls, cancel := l.session.bound(ctx, r, began)
			_, err = l.session.watch(calls, l.session.Alive(), r, began, l.root+r.Key)
			cancel()
			if err != nil {
				return nil, err
			}
		}
	})
}

func (*ephemeralWatch) Card() api.Card {
	return api.Card{
		ID: "zk-ephemeral-watch", Family: "zookeeper", Source: "004", Scope: api.ScopeShared, Safe: true,
		Backends: []string{"mysql", "zookeeper"}, Locker: true, Slow: true,
		Lease: true, Renews: true,
		Title: api.Text{EN: "One ephemeral node, watched by all", ZH: "ZooKeeper 临时节点加监听"},
		Summary: api.Text{
			EN: "Whoever creates the node holds the lock; the others watch it and try again when it is deleted.",
			ZH: "谁创建了临时节点谁持有锁，其他人监听它，被删除后再试。",
		},
		Protects: []api.Hazard{
			api.Race, api.ReplicaRace, api.Crash, api.Overrun, api.Failover, api.MinorityLoss,
			api.ClockJump, api.SessionExpiry, api.Cutoff, api.LostReply,
		},
		Breaks: []api.Break{
			{Hazard: api.Herd, Why: api.Text{
				EN: "All watch the same node: each release wakes everybody, and all but one for nothing.",
				ZH: "所有人监听同一个节点：每次释放都惊醒全部等待者，只有一个能拿到锁。",
			}},
			{Hazard: api.Nesting, Why: api.Text{
				EN: "The node does not know its owner: who acquires again waits for himself.",
				ZH: "节点不认持有者：再次加锁就是等自己。",
			}},
			{Hazard: api.Pause, Why: api.Text{
				EN: "A holder that sleeps past its session still writes when it wakes up.",
				ZH: "持有者停顿超过会话时限，醒来后照样写入。",
			}},
		},
	}
}
