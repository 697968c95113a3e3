package zklock

import (
	"context"
	"time"

	"oversell/locks"
)

// WatchNaive is a row of ephemeral sequential nodes in which every waiter
// watches the one before it, and goes on when that one is gone (tutorial
// 4.4.2). The row and its nodes are those of zk.go; what differs is how a waiter
// waits.
func WatchNaive(s *Session) locks.Locker { return &watchNaive{zkLock{s}} }

type watchNaive struct{ zkLock }

const watchNaiveRoot = "/oversell/zk-watch-naive/"

func (l *watchNaive) Acquire(ctx context.Context, r locks.Request) (*locks.Lock, error) {
	r.Fenced = false // the tutorial's has no fence
	return l.acquire(ctx, r, watchNaiveRoot+r.Key, l.goOn)
}

// goOn waits until the node before ours is gone.
func (l *watchNaive) goOn(ctx context.Context, p *place) (asked time.Time, err error) {
	asked, before, err := l.before(ctx, p)
	if err != nil || before == "" {
		return asked, err
	}
	if _, err := l.watch(ctx, p, before); err != nil {
		return asked, err
	}
	// Something else may have ended the wait.
	if err := p.cut(); err != nil {
		return asked, err
	}
	if time.Since(p.began) >= p.request.Wait {
		return asked, locks.NotAcquired(ctx, p.request.Key, p.request.Wait)
	}
	// DANGER: gone is taken for released. A waiter whose session ended, or who gave
	// up, is gone as well: then the holder ahead of it still works, and we join it.
	// What is missing is the second look, the loop of interProcess.lookAgain.
	asked = time.Now()
	_, err = l.look(ctx, p.dir+"/"+p.node) // at our own node only: are we still there?
	return asked, err
}

// Clear deletes every node of the key's row.
func (l *watchNaive) Clear(ctx context.Context, key string) error {
	return l.session.empty(ctx, watchNaiveRoot+key, "")
}

func (*watchNaive) Card() locks.Card {
	return locks.Card{
		ID: "zk-watch-naive", Family: "zookeeper", Source: "4.4.2", Scope: locks.ScopeShared, Safe: true,
		Backends: []string{"mysql", "zookeeper"}, Locker: true,
		Lease: true, Renews: true, Fair: true,
		Title: locks.Text{EN: "A row of nodes, watched without a second look", ZH: "ZooKeeper 监听前一个节点（不复查）"},
		Summary: locks.Text{
			EN: "A row of ephemeral sequential nodes; each waiter watches the one before it, and goes on as soon as it is gone.",
			ZH: "一排临时顺序节点，每个等待者只监听前一个，它一消失就认为轮到自己。",
		},
		Protects: []locks.Hazard{
			locks.Race, locks.ReplicaRace, locks.Crash, locks.Overrun, locks.Failover, locks.MinorityLoss,
			locks.ClockJump, locks.SessionExpiry, locks.Cutoff, locks.LostReply, locks.Herd,
		},
		Breaks: []locks.Break{
			{Hazard: locks.DeadWaiter, Why: locks.Text{
				EN: "A waiter that dies or gives up in the middle lets the next one in beside the holder.",
				ZH: "中间的等待者死亡或放弃，后一个就会和持有者同时进入。",
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
		Tutorial: []locks.Figure{{Throughput: 39.8, MedianMS: 2344, Remaining: 0}},
	}
}
