package zklock

import (
	"context"
	"time"

	"oversell/api"
	"oversell/locks"
)

// TimeoutGrant is ZK, but the end of a wait counts as a grant (document 004). The waitForLock of
// its listing waits for one session time-out, and then returns true.
func TimeoutGrant(s *Session) locks.Locker {
	return &timeoutGrant{zkLock{session: s, root: "/oversell/zk-timeout-grant/"}}
}

type timeoutGrant struct{ zkLock }

func (l *timeoutGrant) Acquire(ctx context.Context, r locks.Request) (*locks.Lock, error) {
	r.Fenced = false // the listing's lock has no fence
	return l.acquire(ctx, r, l.waitForLock)
}

func (l *timeoutGrant) waitForLock(ctx context.Context, w waiter) (asked time.Time, err error) {
	timed := w
	timed.request.Wait = min(w.request.Wait, l.session.Timeout())
	for {
		asked, before, err := l.before(ctx, w)
		if err != nil || before == "" {
			return asked, err
		}
		if time.Since(w.began) >= l.session.Timeout() {
			// DANGER: the node before still exists, so another request holds the lock. The listing does
			// not look at the result of its wait. The request continues, and deletes only its own node.
			return asked, nil
		}
		if _, err := l.session.watch(ctx, w.alive, timed.request, w.began, w.dir+"/"+before); err != nil {
			return asked, err
		}
	}
}

func (*timeoutGrant) Card() api.Card {
	c := card(api.Card{
		ID: "zk-timeout-grant", Source: "004",
		Title: api.Text{EN: "A queue of nodes, where a time-out is a grant", ZH: "ZooKeeper 顺序节点，等待超时也算获得锁"},
		Summary: api.Text{
			EN: "Each waiter watches the node before its own, for one session time-out; when that time is over, it goes on as if it had the lock.",
			ZH: "每个等待者监听前一个节点，最多等一个会话时限；时间一到，没等到也当作获得了锁。",
		},
		When: api.Text{
			EN: "Not for production: a request whose wait has timed out goes on without the lock. Use `zk` instead.",
			ZH: "不要用于生产环境：等待超时的请求没拿到锁也照样执行。请改用 `zk`。",
		},
		Protects: []api.Hazard{api.Crash, api.SessionExpiry, api.Cutoff},
		Breaks: []api.Break{
			{Hazard: api.Overrun, Why: api.Text{
				EN: "The holder keeps its session and works on, and a waiter enters beside it after one session time-out. A long queue has the same effect.",
				ZH: "持有者的会话还在、业务没做完，等待者等满一个会话时限就进来了。队列太长也一样。",
			}},
		},
	}, api.Nesting, api.Pause)
	c.Safe = false
	return c
}
