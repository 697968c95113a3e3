package zklock

import (
	"context"
	"time"

	"oversell/api"
	"oversell/locks"
)

// WatchNaive queues with ephemeral sequential nodes, like ZK. But each waiter takes the lock as
// soon as the node before its own is deleted (tutorial 4.4.2).
func WatchNaive(s *Session) locks.Locker {
	return &watchNaive{zkLock{session: s, root: watchNaiveRoot}}
}

type watchNaive struct{ zkLock }

const watchNaiveRoot = "/oversell/zk-watch-naive/"

func (l *watchNaive) Acquire(ctx context.Context, r locks.Request) (*locks.Lock, error) {
	r.Fenced = false // the tutorial's lock has no fence
	return l.acquire(ctx, r, l.waitOnce)
}

func (l *watchNaive) waitOnce(ctx context.Context, w waiter) (asked time.Time, err error) {
	asked, before, err := l.before(ctx, w)
	if err != nil || before == "" {
		return asked, err
	}
	if _, err := l.session.watch(ctx, w.alive, w.request, w.began, w.dir+"/"+before); err != nil {
		return asked, err
	}
	// watch also returns when the connection breaks or the time for waiting has ended.
	if err := w.cut(); err != nil {
		return asked, err
	}
	if time.Since(w.began) >= w.request.Wait {
		return asked, locks.NotAcquired(ctx, w.request.Key, w.request.Wait)
	}
	// DANGER: a deleted node does not mean that the lock is free. It may have been the node of a
	// waiter that gave up, or whose session ended. Then two requests hold the lock: the holder further
	// ahead and this waiter. zkLock.waitTurn prevents this, because it lists the queue again.
	asked = time.Now()
	_, err = w.stat(ctx) // checks only the waiter's own node
	return asked, err
}

func (*watchNaive) Card() api.Card {
	return card(api.Card{
		ID: "zk-watch-naive", Source: "4.4.2", Fair: true,
		Title: api.Text{EN: "A queue of nodes, watched but not listed again", ZH: "ZooKeeper 监听前一个节点（不复查）"},
		Summary: api.Text{
			EN: "A queue of ephemeral sequential nodes; each waiter watches the one before it, and takes the lock as soon as it is deleted.",
			ZH: "一排临时顺序节点，每个等待者只监听前一个，它一消失就认为轮到自己。",
		},
		When: api.Text{
			EN: "Not for production: if a waiter in the queue dies, the next one enters beside the holder. Use `zk` instead.",
			ZH: "不要用于生产环境：队列中间的等待者一死，后一个就会和持有者同时进入。请改用 `zk`。",
		},
		Protects: []api.Hazard{
			api.Race, api.ReplicaRace, api.Crash, api.Overrun, api.Failover, api.MinorityLoss,
			api.ClockJump, api.SessionExpiry, api.Cutoff, api.LostReply, api.Herd,
			api.Operator, api.Starved, api.WaiterSession,
		},
		Breaks: []api.Break{
			{Hazard: api.DeadWaiter, Why: api.Text{
				EN: "When a waiter in the middle dies or gives up, the next waiter takes the lock although another one holds it.",
				ZH: "中间的等待者死亡或放弃，后一个就会和持有者同时进入。",
			}},
		},
		Tutorial: []api.Figure{{Throughput: 39.8, MedianMS: 2344, Remaining: 0}},
	}, api.Nesting, api.Pause)
}
