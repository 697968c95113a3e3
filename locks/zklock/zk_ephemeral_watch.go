package zklock

import (
	"context"
	"errors"
	"path"
	"time"

	"oversell/locks"
)

// EphemeralWatch is one ephemeral node as in Ephemeral, but who finds it taken
// watches it and tries again when it is deleted (document 004).
func EphemeralWatch(s *Session) locks.Locker {
	return &ephemeralWatch{single{zkLock{s}, "/oversell/zk-ephemeral-watch/"}}
}

type ephemeralWatch struct{ single }

func (l *ephemeralWatch) Acquire(ctx context.Context, r locks.Request) (*locks.Lock, error) {
	began := time.Now()
	for {
		h, err := l.try(ctx, r, began)
		if !errors.Is(err, errTaken) {
			return h, err
		}
		// DANGER: all wait for the same node. A release wakes every one of them, they
		// all try to create it, one can, and the rest have been woken for nothing.
		if err := l.untilGone(ctx, r, began); err != nil && !l.hungUp(err, r, began) {
			return nil, l.refusal(ctx, r, err)
		}
	}
}

// untilGone returns when the node is gone, or may be, for the connection broke.
func (l *ephemeralWatch) untilGone(ctx context.Context, r locks.Request, began time.Time) error {
	calls, cancel := l.patience(ctx, r, began)
	defer cancel()
	p := &place{request: r, began: began, alive: l.session.Alive(), dir: path.Dir(l.root + r.Key)}
	_, err := l.watch(calls, p, path.Base(r.Key))
	return err
}

func (*ephemeralWatch) Card() locks.Card {
	return locks.Card{
		ID: "zk-ephemeral-watch", Family: "zookeeper", Source: "004", Scope: locks.ScopeShared, Safe: true,
		Backends: []string{"mysql", "zookeeper"}, Locker: true, Slow: true,
		Lease: true, Renews: true,
		Title: locks.Text{EN: "One ephemeral node, watched by all", ZH: "ZooKeeper 临时节点加监听"},
		Summary: locks.Text{
			EN: "Whoever creates the node holds the lock; the others watch it and try again when it is deleted.",
			ZH: "谁创建了临时节点谁持有锁，其他人监听它，被删除后再试。",
		},
		Protects: []locks.Hazard{
			locks.Race, locks.ReplicaRace, locks.Crash, locks.Overrun, locks.Failover, locks.MinorityLoss,
			locks.ClockJump, locks.SessionExpiry, locks.Cutoff, locks.LostReply,
		},
		Breaks: []locks.Break{
			{Hazard: locks.Herd, Why: locks.Text{
				EN: "All watch the same node: each release wakes everybody, and all but one for nothing.",
				ZH: "所有人监听同一个节点：每次释放都惊醒全部等待者，只有一个能拿到锁。",
			}},
			{Hazard: locks.Nesting, Why: locks.Text{
				EN: "The node does not know its owner: who acquires again waits for himself.",
				ZH: "节点不认持有者：再次加锁就是等自己。",
			}},
			{Hazard: locks.Pause, Why: locks.Text{
				EN: "A holder that sleeps past its session still writes when it wakes up.",
				ZH: "持有者停顿超过会话时限，醒来后照样写入。",
			}},
		},
	}
}
