package zklock

import (
	"context"
	"fmt"
	"time"

	"oversell/locks"
)

// Sequential is a row of ephemeral sequential nodes whose owners look at the
// whole row until theirs is the first (tutorial 4.4.1). The row and its nodes
// are those of zk.go; what differs is how a waiter waits.
func Sequential(s *Session) locks.Locker { return &sequential{zkLock{s}} }

type sequential struct{ zkLock }

const (
	sequentialRoot = "/oversell/zk-sequential/"
	// sequentialPause is the tutorial's, between two looks.
	sequentialPause = 20 * time.Millisecond
)

func (l *sequential) Acquire(ctx context.Context, r locks.Request) (*locks.Lock, error) {
	r.Fenced = false // the tutorial's has no fence
	return l.acquire(ctx, r, sequentialRoot+r.Key, l.poll)
}

// poll lists the row until our node is the first in it.
func (l *sequential) poll(ctx context.Context, p *place) (asked time.Time, err error) {
	for {
		asked, before, err := l.before(ctx, p)
		if err != nil || before == "" {
			return asked, err
		}
		// DANGER: with n waiters, fifty times a second n lists of n names are read, and
		// only one of them will be news to anybody.
		if err := locks.SleepRetry(ctx, p.request, p.began, sequentialPause); err != nil {
			return asked, l.blame(ctx, p, before, err)
		}
	}
}

// blame says when what we waited for in vain never goes.
func (l *sequential) blame(ctx context.Context, p *place, before string, vain error) error {
	if ctx.Err() != nil {
		return vain
	}
	path := p.dir + "/" + before
	stat, err := l.look(ctx, path)
	if err != nil {
		return vain
	}
	if err := foreign(path, stat); err != nil {
		return fmt.Errorf("%w: %w", vain, err)
	}
	return vain
}

// Clear deletes every node of the key's row.
func (l *sequential) Clear(ctx context.Context, key string) error {
	return l.session.empty(ctx, sequentialRoot+key, "")
}

func (*sequential) Card() locks.Card {
	return locks.Card{
		ID: "zk-sequential", Family: "zookeeper", Source: "4.4.1", Scope: locks.ScopeShared, Safe: true,
		Backends: []string{"mysql", "zookeeper"}, Locker: true,
		Lease: true, Renews: true, Fair: true, Slow: true,
		Title: locks.Text{EN: "A row of nodes, polled", ZH: "ZooKeeper 顺序节点轮询"},
		Summary: locks.Text{
			EN: "A row of ephemeral sequential nodes; every waiter lists them all until its own is the first.",
			ZH: "一排临时顺序节点，每个等待者反复读取全部子节点，直到自己排第一。",
		},
		Protects: []locks.Hazard{
			locks.Race, locks.ReplicaRace, locks.Crash, locks.Overrun, locks.Failover, locks.MinorityLoss,
			locks.ClockJump, locks.DeadWaiter, locks.SessionExpiry, locks.Cutoff, locks.LostReply,
		},
		Breaks: []locks.Break{
			{Hazard: locks.Polling, Why: locks.Text{
				EN: "Every waiter reads the whole row again and again: the reads grow with the square of the queue.",
				ZH: "每个等待者反复读取整个队列：读取量按队列长度的平方增长。",
			}},
			{Hazard: locks.Nesting, Why: locks.Text{
				EN: "An owner that acquires again queues behind itself.",
				ZH: "持有者再次加锁，就排在自己后面。",
			}},
			{Hazard: locks.Pause, Why: locks.Text{
				EN: "A holder that sleeps past its session still writes when it wakes up.",
				ZH: "持有者停顿超过会话时限，醒来后照样写入。",
			}},
		},
		Tutorial: []locks.Figure{{Throughput: 19.2, MedianMS: 5140, Remaining: 0}},
	}
}
