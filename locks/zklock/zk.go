package zklock

import (
	"context"
	"errors"
	"math"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"oversell/api"
	"oversell/locks"
)

// ZK is Curator's InterProcessMutex (tutorial 4.5, 4.6.1). Every request creates an ephemeral
// sequential node and watches the node before it. The first node holds the lock. All replicas queue
// in one folder, so grants go in the order of arrival.
//
// The usual form of this recipe has three flaws, which ZK corrects:
//   - A woken waiter lists the nodes again. The node before it may have belonged to a waiter that
//     gave up while the lock is still held. No list is needed after a holder's release, for which
//     node.pass causes a different event (waitTurn).
//   - If the creation of a node gets no answer, the node is found by the GUID in its name, and
//     deleted. Otherwise the node would block the lock (newNode).
//   - A holder is notified when its connection breaks. From then on, the server may end the session
//     and grant the lock to the next waiter (node.lock).
//
// Each grant costs the servers four requests. CohortZK costs less.
func ZK(s *Session) locks.Locker { return locks.Reentrant(&zkLock{session: s, root: root}) }

// zkLock is the queue of nodes on which ZK and similar locks are built.
type zkLock struct {
	session *Session
	root    string   // the folder that has a folder for each key
	foreign sync.Map // the paths of nodes for which errForeign was returned

	// For shared.
	lists  singleflight.Group // by folder
	answer locks.FIFOMutex    // of a folder, until the list under way is answered
}

const root = "/oversell/zk/"

func (l *zkLock) Acquire(ctx context.Context, r locks.Request) (*locks.Lock, error) {
	return l.acquire(ctx, r, l.waitTurn)
}

type waiter struct {
	*node
	request locks.Request
	began   time.Time // start of the wait
}

// acquire creates a node, and holds the lock when waitTurn returns. asked is when the last request
// that found the node was sent. The server keeps the session for at least one time-out after asked.
func (l *zkLock) acquire(ctx context.Context, r locks.Request, waitTurn func(context.Context, waiter) (asked time.Time, err error)) (*locks.Lock, error) {
	return retry(ctx, l.session, r, func(began time.Time) (*locks.Lock, error) {
		calls, cancel := l.session.bound(ctx, r, began)
		defer cancel()
		dir := l.root + r.Key
		n, err := withFolder(calls, l.session, dir, func() (*node, error) { return newNode(calls, l.session, dir, "lock-") })
		if err != nil {
			return nil, err
		}
		locks.Trace(ctx, api.Queued, r.Key, r.Owner, 0)
		fence := int64(0)
		if r.Fenced {
			fence, err = n.fence(calls)
		}
		asked := time.Now()
		if err == nil {
			asked, err = waitTurn(calls, waiter{n, r, began})
		}
		if err != nil {
			n.abandon(ctx)
			return nil, err
		}
		return n.lock(ctx, r, asked, fence, n.pass), nil
	})
}

func (l *zkLock) waitTurn(ctx context.Context, w waiter) (asked time.Time, err error) {
	for {
		asked, before, err := l.beforeIn(ctx, w, l.shared)
		if err != nil || before == "" {
			return asked, err
		}
		released, err := l.session.watch(ctx, w.alive, w.request, w.began, w.dir+"/"+before)
		switch {
		case errors.Is(err, errForeign):
			l.foreign.Store(w.dir+"/"+before, true)
		case err != nil:
			return asked, err
		case released && w.cut() == nil:
			// The deleted node was the holder's, so the waiter's own node is now the first. A waiter must
			// check its own node every third of a time-out, like a holder, unless the last list has done so.
			if time.Since(asked) >= l.session.Timeout()/3 {
				asked = time.Now()
				_, err = w.stat(ctx)
			}
			return asked, err
		}
	}
}

// listing is the answer to a list of a queue.
type listing struct {
	asked time.Time // when the request was sent
	nodes []numbered
}

// before lists the queue and returns the node just before the waiter's, or "" for the first waiter.
// It returns errNodeGone if the waiter's node is not in the list, or its session may have ended.
func (l *zkLock) before(ctx context.Context, w waiter) (asked time.Time, before string, err error) {
	return l.beforeIn(ctx, w, func(ctx context.Context, dir string) (listing, error) {
		asked := time.Now()
		names, err := l.session.list(ctx, dir)
		return listing{asked, numberedNodes(names)}, err
	})
}

func (l *zkLock) beforeIn(ctx context.Context, w waiter, list func(context.Context, string) (listing, error)) (asked time.Time, before string, err error) {
	if err := w.cut(); err != nil {
		return asked, "", err
	}
	queue, err := list(ctx, w.dir)
	if err != nil {
		return asked, "", err
	}
	before, found := nearestBefore(w.name, queue.nodes, func(name string) bool {
		_, foreign := l.foreign.Load(w.dir + "/" + name)
		return foreign
	})
	if !found {
		return asked, "", errNodeGone
	}
	return queue.asked, before, nil
}

// shared lists a folder for all callers that wait for the next list of it. Otherwise, ten thousand waiters that
// arrive together would each read ten thousand names.
//
// DANGER: a list that was sent before a caller created its node need not contain the node, or the nodes before it.
// So no caller shares a list that is under way.
func (l *zkLock) shared(ctx context.Context, dir string) (listing, error) {
	sent(ctx, "ls", dir)
	answers := l.lists.DoChan(dir, func() (any, error) {
		leave, err := l.answer.Take(context.Background(), dir, math.MaxInt64)
		if err != nil {
			return listing{}, err
		}
		defer leave()
		l.lists.Forget(dir) // later callers share the next list
		asked := time.Now()
		names, err := l.session.list(context.Background(), dir)
		return listing{asked, numberedNodes(names)}, err
	})
	select {
	case a := <-answers:
		queue, _ := a.Val.(listing)
		return queue, a.Err
	case <-ctx.Done():
		return listing{}, context.Cause(ctx)
	}
}

func (l *zkLock) Clear(ctx context.Context, key string) error {
	return l.session.empty(ctx, l.root+key, "")
}

func (*zkLock) Card() api.Card {
	return card(api.Card{
		ID: "zk", Source: "4.5, 4.6.1; 002, 004", Core: true,
		Reentrant: true, Fenced: true, Fair: true,
		Title: api.Text{EN: "ZooKeeper, as Curator does it", ZH: "ZooKeeper 可重入锁（Curator 方式）"},
		Summary: api.Text{
			EN: "A queue of ephemeral sequential nodes; each waiter watches the one before it. After a wake-up it lists them again, except after a release by the holder.",
			ZH: "一排临时顺序节点，每个等待者只监听前一个；被唤醒后再列出一次，持有者正常释放时除外。",
		},
		When: api.Text{
			EN: "Choose it if the lock must survive a dead server or a clock that jumps, or keep the order of arrival. It is slower than `redis`.",
			ZH: "节点宕机或时钟跳变时锁仍要有效，或者必须先来先得时选它。它比 `redis` 慢。",
		},
		Protects: []api.Hazard{
			api.Race, api.ReplicaRace, api.Crash, api.Overrun, api.Failover, api.MinorityLoss,
			api.ClockJump, api.DeadWaiter, api.SessionExpiry, api.Cutoff, api.LostReply, api.Nesting, api.Herd,
			api.Operator, api.Starved, api.WaiterSession,
		},
		Tutorial: []api.Figure{{Note: api.Text{EN: "Curator", ZH: "Curator"}, Throughput: 36.6, MedianMS: 2570, Remaining: 0}},
	}, api.Pause)
}
