package zklock

import (
	"context"
	"time"

	"oversell/api"
	"oversell/locks"
)

// NodeZero is Sequential with the getPreNode of tutorial 4.4.1. The listing looks for the highest
// number that is below the waiter's number and above 0. So it never finds node 0.
func NodeZero(s *Session) locks.Locker {
	return &nodeZero{zkLock{session: s, root: "/oversell/zk-node-zero/"}}
}

type nodeZero struct{ zkLock }

func (l *nodeZero) Acquire(ctx context.Context, r locks.Request) (*locks.Lock, error) {
	r.Fenced = false // the tutorial's lock has no fence
	return l.acquire(ctx, r, l.poll)
}

func (l *nodeZero) poll(ctx context.Context, w waiter) (asked time.Time, err error) {
	for {
		asked, before, err := l.before(ctx, w)
		// DANGER: the number of the first node in a new folder is 0. Its request holds the lock, but all
		// requests behind it queue as if node 0 did not exist. Without node 0, the queue is correct.
		if number, _ := sequence(before); err != nil || number == 0 {
			return asked, err
		}
		if err := locks.SleepRetry(ctx, w.request, w.began, sequentialPause); err != nil {
			return asked, err
		}
	}
}

// Clear deletes the folder, too. So after each reset of the stock, the next node is node 0 again.
func (l *nodeZero) Clear(ctx context.Context, key string) error {
	return l.session.clear(ctx, l.root+key)
}

func (*nodeZero) Card() api.Card {
	c := card(api.Card{
		ID: "zk-node-zero", Source: "4.4.1", Slow: true,
		Title: api.Text{EN: "A queue of nodes that never sees node 0", ZH: "ZooKeeper 顺序节点，看不到 0 号节点"},
		Summary: api.Text{
			EN: "zk-sequential with the tutorial's search for the node before, which skips number 0: beside the first holder, the second request enters.",
			ZH: "按教程原样查找前一个节点，序号 0 会被漏掉：第一个持有者还在，第二个请求就进来了。",
		},
		When: api.Text{
			EN: "Not for production: while node 0 holds the lock, a second request enters. Use `zk` instead.",
			ZH: "不要用于生产环境：0 号节点持有锁时，第二个请求也会进来。请改用 `zk`。",
		},
		Breaks: []api.Break{
			{Hazard: api.Race, Why: api.Text{
				EN: "The search accepts only numbers above 0. While node 0 holds the lock, node 1 finds no node before its own.",
				ZH: "查找时只认大于 0 的序号：0 号节点持有锁时，1 号节点找不到前一个节点。",
			}},
			{Hazard: api.ReplicaRace, Why: api.Text{
				EN: "The same with requests on other replicas. It lasts while node 0 exists, so a long run may lose no update, or a few at its start.",
				ZH: "同上，请求来自不同的副本。只在 0 号节点存在期间出错，所以压测时可能一次也不丢，或只在开头丢几次更新。",
			}},
		},
	}, api.Polling)
	c.Scope, c.Safe = api.ScopeNone, false
	return c
}
