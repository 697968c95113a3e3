package zklock

import (
	"context"
	"errors"
	"sync"
	"time"

	"oversell/api"
	"oversell/locks"
)

// ZK locks as Curator's InterProcessMutex does (tutorial 4.5, 4.6.1): every waiter makes an
// ephemeral sequential node and watches the one before it; the first node holds the lock.
// All replicas queue in one folder, so grants go in the order of arrival.
//
// Three things go wrong in the recipe as it is often written. Here
//   - a woken waiter lists the nodes again, for the node before it may have been a waiter that
//     gave up while another one still holds the lock. Only the event of a holder's release,
//     which node.pass makes different, needs no list (waitTurn);
//   - a node whose creation got no answer is found by the GUID in its name, and deleted:
//     nobody would release it (newNode);
//   - a holder is notified when its connection breaks, for from then on the server may end
//     the session, and give the lock to the next one (node.lock).
//
// Each waiter costs the servers a node, a list and a watch: four requests for each grant. With a
// thousand waiters each list has a thousand names. CohortZK costs less.
func ZK(s *Session) locks.Locker { return locks.Reentrant(&zkLock{session: s, root: root}) }

// zkLock is the queue of nodes that this family of locks shares.
type zkLock struct {
	session *Session
	root    string   // the folder of all keys' folders
	foreign sync.Map // paths of nodes with the name of a lock's node that no session owns
}

const root = "/oversell/zk/"

func (l *zkLock) Acquire(ctx context.Context, r locks.Request) (*locks.Lock, error) {
	return l.acquire(ctx, r, l.waitTurn)
}

// waiter is a request with its node in the queue.
type waiter struct {
	*node
	request locks.Request
	began   time.Time // of the wait
}

// acquire queues until waitTurn returns. asked is when the last request was sent that found
// the node: the server keeps its session for at least one time-out from then on.
func (l *zkLock) acquire(ctx context.Context, r locks.Request, waitTurn func(context.Context, waiter) (asked time.Time, err error)) (*locks.Lock, error) {
	began := time.Now()
	return retry(ctx, l.session, r, began, func() (*locks.Lock, error) {
		calls, cancel := l.session.bound(ctx, r, began)
		defer cancel()
		n, err := l.queue(calls, l.root+r.Key)
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

// queue makes a node in the key's folder, and the folder where it is missing.
func (l *zkLock) queue(ctx context.Context, dir string) (*node, error) {
	n, err := newNode(ctx, l.session, dir, "lock-")
	if isNoNode(err) {
		if err = l.session.mkdir(ctx, dir); err == nil {
			n, err = newNode(ctx, l.session, dir, "lock-")
		}
	}
	return n, err
}

// waitTurn waits until no other node is before this one.
func (l *zkLock) waitTurn(ctx context.Context, w waiter) (asked time.Time, err error) {
	for {
		asked, before, err := l.before(ctx, w)
		if err != nil || before == "" {
			return asked, err
		}
		released, err := w.watch(ctx, before)
		switch {
		case errors.Is(err, errForeign):
			l.foreign.Store(w.dir+"/"+before, true)
		case err != nil:
			return asked, err
		case released && w.cut() == nil && time.Since(asked) < l.session.timeout/3:
			// The node before was the holder's, so no other node is before this one. A holder
			// checks its own node every third of a time-out; so does a waiter, by the list.
			return asked, nil
		}
	}
}

// before lists the queue and returns the node just before this one, "" where it is the
// first. errNodeGone: it is not in the list, or its session may have ended.
func (l *zkLock) before(ctx context.Context, w waiter) (asked time.Time, before string, err error) {
	if err := w.cut(); err != nil {
		return asked, "", err
	}
	asked = time.Now()
	names, err := l.session.list(ctx, w.dir)
	if err != nil {
		return asked, "", err
	}
	before, found := nearestBefore(w.name, names, func(name string) bool {
		_, foreign := l.foreign.Load(w.dir + "/" + name)
		return foreign
	})
	if !found {
		return asked, "", errNodeGone
	}
	return asked, before, nil
}

// watch waits until another node of the queue is deleted, see Session.watch.
func (w waiter) watch(ctx context.Context, other string) (released bool, err error) {
	return w.session.watch(ctx, w.alive, w.request, w.began, w.dir+"/"+other)
}

// Clear deletes every node of the key's queue: all holders lose the lock.
func (l *zkLock) Clear(ctx context.Context, key string) error {
	return l.session.empty(ctx, l.root+key, "")
}

func (*zkLock) Card() api.Card {
	return api.Card{
		ID: "zk", Family: "zookeeper", Source: "4.5, 4.6.1; 002, 004", Scope: api.ScopeShared, Safe: true,
		Core: true, Backends: []string{"mysql", "zookeeper"}, Locker: true,
		Lease: true, Renews: true, Reentrant: true, Fenced: true, Fair: true,
		Title: api.Text{EN: "ZooKeeper, as Curator does it", ZH: "ZooKeeper 可重入锁（Curator 方式）"},
		Summary: api.Text{
			EN: "A queue of ephemeral sequential nodes; each waiter watches the one before it, and lists them again unless the holder has released it.",
			ZH: "一排临时顺序节点，每个等待者只监听前一个，它消失后再看一次。",
		},
		Protects: []api.Hazard{
			api.Race, api.ReplicaRace, api.Crash, api.Overrun, api.Failover, api.MinorityLoss,
			api.ClockJump, api.DeadWaiter, api.SessionExpiry, api.Cutoff, api.LostReply, api.Nesting, api.Herd,
		},
		Breaks: []api.Break{{Hazard: api.Pause, Why: api.Text{
			EN: "A holder that sleeps past its session still writes when it wakes up, unless the write is fenced.",
			ZH: "持有者停顿超过会话时限，醒来后照样写入，除非写入带栅栏号。",
		}}},
		Tutorial: []api.Figure{{Note: "Curator", Throughput: 36.6, MedianMS: 2570, Remaining: 0}},
	}
}
