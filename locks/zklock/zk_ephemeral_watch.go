package zklock

import (
	"context"
	"time"

	"oversell/api"
	"oversell/locks"
)

// EphemeralWatch locks with one ephemeral node, like Ephemeral. But each waiter watches the node
// and tries again when it is deleted (document 004).
func EphemeralWatch(s *Session) locks.Locker {
	return &ephemeralWatch{singleNode{s, "/oversell/zk-ephemeral-watch/"}}
}

type ephemeralWatch struct{ singleNode }

func (l *ephemeralWatch) Acquire(ctx context.Context, r locks.Request) (*locks.Lock, error) {
	return l.acquire(ctx, r, func(began time.Time) error {
		calls, cancel := l.session.bound(ctx, r, began)
		defer cancel()
		// DANGER: all waiters watch the same node. A release wakes all of them, and all try to create the
		// node. One request succeeds, and all others were woken in vain.
		_, err := l.session.watch(calls, l.session.Alive(), r, began, l.root+r.Key)
		return err
	})
}

func (*ephemeralWatch) Card() api.Card {
	return card(api.Card{
		ID: "zk-ephemeral-watch", Source: "004", Slow: true,
		Title: api.Text{EN: "One ephemeral node, watched by all", ZH: "ZooKeeper 临时节点加监听"},
		Summary: api.Text{
			EN: "The request that creates the node holds the lock; the others watch it and try again when it is deleted.",
			ZH: "创建临时节点的请求持有锁，其他请求监听它，被删除后再试。",
		},
		When: api.Text{
			EN: "Not for production: each release wakes all waiters, a thundering herd, and one of them gets the lock. Use `zk` instead.",
			ZH: "不要用于生产环境：每次释放都会惊醒所有等待者（惊群），只有一个能拿到锁。请改用 `zk`。",
		},
		Protects: []api.Hazard{
			api.Race, api.ReplicaRace, api.Crash, api.Overrun, api.Failover, api.MinorityLoss,
			api.ClockJump, api.SessionExpiry, api.Cutoff, api.LostReply,
			api.Operator, api.Starved, api.WaiterSession,
		},
		Breaks: []api.Break{
			{Hazard: api.Herd, Why: api.Text{
				EN: "All waiters watch the same node: each release wakes all of them, and only one gets the lock.",
				ZH: "所有等待者监听同一个节点：每次释放都惊醒全部等待者，只有一个能拿到锁。",
			}},
			{Hazard: api.Nesting, Why: api.Text{
				EN: "The node does not store its owner: an owner that acquires again waits for itself.",
				ZH: "节点不记录持有者：持有者再次加锁，等的是自己。",
			}},
		},
	}, api.Pause)
}
