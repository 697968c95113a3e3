package zklock

import (
	"context"
	"time"

	"oversell/api"
	"oversell/locks"
)

// WatchNaive queues with ephemeral sequential nodes, as zk.go does. Each waiter watches the
// node before its own, and takes the lock when that one is gone (tutorial 4.4.2).
func WatchNaive(s *Session) locks.Locker {
	return &watchNaive{zkLock{session: s, root: watchNaiveRoot}}
}

type watchNaive struct{ zkLock }

const watchNaiveRoot = "/oversell/zk-watch-naive/"

func (l *watchNaive) Acquire(ctx context.Context, r locks.Request) (*locks.Lock, error) {
	r.Fenced = false // the tutorial's has no fence
	return l.acquire(ctx, r, l.waitOnce)
}

// waitOnce waits until the node before the waiter's is gone.
func (l *watchNaive) waitOnce(ctx context.Context, w waiter) (asked time.Time, err error) {
	asked, before, err := l.before(ctx, w)
	if err != nil || before == "" {
		return asked, err
	}
	if _, err := w.watch(ctx, before); err != nil {
		return asked, err
	}
	// The wait may also have ended for another reason.
	if err := w.cut(); err != nil {
		return asked, err
	}
	if time.Since(w.began) >= w.request.Wait {
		return asked, locks.NotAcquired(ctx, w.request.Key, w.request.Wait)
	}
	// DANGER: a node that is gone is taken for a lock that is free. A waiter that gave up, or
	// whose session ended, is gone as well: then the holder ahead of it still works, and this
	// one joins it. zkLock.waitTurn lists the queue again, and so prevents that.
	asked = time.Now()
	_, err = w.stat(ctx) // of the own node only
	return asked, err
}

func (*watchNaive) Card() api.Card {
	return api.Card{
		ID: "zk-watch-naive", Family: "zookeeper", Source: "4.4.2", Scope: api.ScopeShared, Safe: true,
		Backends: []string{"mysql", "zookeeper"}, Locker: true,
		Lease: true, Renews: true, Fair: true,
		Title: api.Text{EN: "A queue of nodes, watched but not listed again", ZH: "ZooKeeper 监听前一个节点（不复查）"},
		Summary: api.Text{
			EN: "A queue of ephemeral sequential nodes; each waiter watches the one before it, and takes the lock as soon as it is gone.",
			ZH: "一排临时顺序节点，每个等待者只监听前一个，它一消失就认为轮到自己。",
		},
		Protects: []api.Hazard{
			api.Race, api.ReplicaRace, api.Crash, api.Overrun, api.Failover, api.MinorityLoss,
			api.ClockJump, api.SessionExpiry, api.Cutoff, api.LostReply, api.Herd,
		},
		Breaks: []api.Break{
			{Hazard: api.DeadWaiter, Why: api.Text{
				EN: "A waiter that dies or gives up in the middle lets the next one in beside the holder.",
				ZH: "中间的等待者死亡或放弃，后一个就会和持有者同时进入。",
			}},
			{Hazard: api.Nesting, Why: api.Text{
				EN: "An owner that acquires again queues behind itself.",
				ZH: "持有者再次加锁，就排在自己后面。",
			}},
			{Hazard: api.Pause, Why: api.Text{
				EN: "A holder that sleeps past its session still writes when it wakes up.",
				ZH: "持有者停顿超过会话时限，醒来后照样写入。",
			}},
		},
		Tutorial: []api.Figure{{Throughput: 39.8, MedianMS: 2344, Remaining: 0}},
	}
}
