package zklock

import (
	"context"
	"fmt"
	"time"

	"oversell/api"
	"oversell/locks"
)

// Sequential is ZK, but each waiter lists the queue until its own node is first (tutorial 4.4.1).
func Sequential(s *Session) locks.Locker {
	return &sequential{zkLock{session: s, root: sequentialRoot}}
}

type sequential struct{ zkLock }

const (
	sequentialRoot = "/oversell/zk-sequential/"
	// sequentialPause is the tutorial's pause between two lists.
	sequentialPause = 20 * time.Millisecond
)

func (l *sequential) Acquire(ctx context.Context, r locks.Request) (*locks.Lock, error) {
	r.Fenced = false // the tutorial's lock has no fence
	return l.acquire(ctx, r, l.poll)
}

func (l *sequential) poll(ctx context.Context, w waiter) (asked time.Time, err error) {
	for {
		asked, before, err := l.before(ctx, w)
		if err != nil || before == "" {
			return asked, err
		}
		// DANGER: fifty times a second, each of n waiters reads a list of n names, although only one
		// waiter can get the lock.
		if err := locks.SleepRetry(ctx, w.request, w.began, sequentialPause); err != nil {
			return asked, l.explain(ctx, w.dir+"/"+before, err)
		}
	}
}

// explain adds errForeign to waited if the node before, for which the waiter waits, has no session.
func (l *sequential) explain(ctx context.Context, before string, waited error) error {
	if stat, err := l.session.stat(ctx, before); err == nil {
		if err := foreign(before, stat); err != nil {
			return fmt.Errorf("%w: %w", waited, err)
		}
	}
	return waited
}

func (*sequential) Card() api.Card {
	return card(api.Card{
		ID: "zk-sequential", Source: "4.4.1", Fair: true, Slow: true,
		Title: api.Text{EN: "A queue of nodes, polled", ZH: "ZooKeeper 顺序节点轮询"},
		Summary: api.Text{
			EN: "A queue of ephemeral sequential nodes; every waiter lists them all until its own is the first.",
			ZH: "一排临时顺序节点，每个等待者反复读取全部子节点，直到自己排第一。",
		},
		When: api.Text{
			EN: "Not for production: each waiter reads the whole queue again and again. Use `zk`, in which a waiter watches one node.",
			ZH: "不要用于生产环境：每个等待者都反复读取整个队列。请改用 `zk`，它只监听前一个节点。",
		},
		Protects: []api.Hazard{
			api.Race, api.ReplicaRace, api.Crash, api.Overrun, api.Failover, api.MinorityLoss,
			api.ClockJump, api.DeadWaiter, api.SessionExpiry, api.Cutoff, api.LostReply,
			api.Operator, api.Starved, api.WaiterSession,
		},
		Tutorial: []api.Figure{{Throughput: 19.2, MedianMS: 5140, Remaining: 0}},
	}, api.Polling, api.Nesting, api.Pause)
}
