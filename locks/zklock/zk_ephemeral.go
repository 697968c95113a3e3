package zklock

import (
	"context"
	"errors"
	"time"

	"oversell/locks"
)

// Ephemeral is one ephemeral node (tutorial 4.3): who creates it has the lock,
// the others try again every 200 ms. A dead holder's session ends, and the node
// goes with it: no expiry to choose. The node itself is in single.go.
func Ephemeral(s *Session) locks.Locker {
	return &ephemeral{single{zkLock{s}, "/oversell/zk-ephemeral/"}}
}

type ephemeral struct{ single }

// ephemeralPause is the tutorial's.
const ephemeralPause = 200 * time.Millisecond

func (l *ephemeral) Acquire(ctx context.Context, r locks.Request) (*locks.Lock, error) {
	began := time.Now()
	for {
		h, err := l.try(ctx, r, began)
		if !errors.Is(err, errTaken) {
			return h, err
		}
		// DANGER: nobody tells us that the node is gone. Every waiter asks again and
		// again, and each try is a write for the ensemble, also one that fails; the
		// lock lies free until one comes by, and luck says which.
		if err := locks.SleepRetry(ctx, r, began, ephemeralPause); err != nil {
			return nil, err
		}
	}
}

func (*ephemeral) Card() locks.Card {
	return locks.Card{
		ID: "zk-ephemeral", Family: "zookeeper", Source: "4.3", Scope: locks.ScopeShared, Safe: true,
		Backends: []string{"mysql", "zookeeper"}, Locker: true,
		Lease: true, Renews: true, Slow: true,
		Title: locks.Text{EN: "One ephemeral node", ZH: "ZooKeeper 临时节点"},
		Summary: locks.Text{
			EN: "Whoever creates the node holds the lock; the others try again every 200 ms.",
			ZH: "谁创建了临时节点谁持有锁，其他人每 200 毫秒重试。",
		},
		Protects: []locks.Hazard{
			locks.Race, locks.ReplicaRace, locks.Crash, locks.Overrun, locks.Failover, locks.MinorityLoss,
			locks.ClockJump, locks.SessionExpiry, locks.Cutoff, locks.LostReply,
		},
		Breaks: []locks.Break{
			{Hazard: locks.Polling, Why: locks.Text{
				EN: "Every waiter asks five times a second, and each try is a write for the ensemble.",
				ZH: "每个等待者每秒问五次，每次重试对集群都是一次写。",
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
		Tutorial: []locks.Figure{{Throughput: 25.7, MedianMS: 49, Remaining: 0}},
	}
}
