package zklock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/google/uuid"

	"oversell/locks"
	"oversell/stock"
)

// ZK is what Curator's InterProcessMutex does (tutorial 4.5, 4.6.1): every
// waiter has an ephemeral sequential node and watches the one before it; the
// first in the row holds the lock. A dead session's nodes go by themselves. The
// row is one for all replicas, so grants go in the order of arrival.
func ZK(s *Session) locks.Locker { return locks.Reentrant(&zkLock{s}) }

type zkLock struct{ session *Session }

const root = "/oversell/zk/"

func (l *zkLock) Acquire(ctx context.Context, r locks.Request) (*locks.Hold, error) {
	return l.acquire(ctx, r, root+r.Key, l.lookAgain)
}

// acquire queues in dir. The turn is how a node there waits for its own.
func (l *zkLock) acquire(ctx context.Context, r locks.Request, dir string, turn turn) (*locks.Hold, error) {
	began := time.Now()
	for {
		h, err := l.queue(ctx, r, began, dir, turn)
		switch {
		case err == nil || errors.Is(err, locks.ErrNotAcquired):
			return h, err
		case ctx.Err() != nil:
			return nil, locks.NotAcquired(ctx, r.Key, r.Wait)
		case !errors.Is(err, errNodeGone):
			return nil, &stock.Unavailable{Backend: "zookeeper", Err: err}
		}
		// The session expired while we waited: a fresh node in a fresh session.
		if err := locks.Doze(ctx, r, began, 50*time.Millisecond); err != nil {
			return nil, err
		}
	}
}

var errNodeGone = errors.New("our node is gone")

// queue makes a node and waits until it is the first. On failure, no node stays.
func (l *zkLock) queue(ctx context.Context, r locks.Request, began time.Time, dir string, turn turn) (h *locks.Hold, err error) {
	guid := uuid.NewString()
	// One time-out more than the wait: an answer that is late must not pass for a server that is gone.
	calls, cancel := context.WithTimeout(ctx, max(0, r.Wait-time.Since(began))+l.session.timeout)
	defer cancel()
	node, err := l.create(calls, dir, guid)
	if err != nil {
		return nil, err // create has cleaned up
	}
	locks.Trace(ctx, locks.Queued, r.Key, r.Owner, 0)
	// Not before the node is there, for creating it may have waited for a connection.
	// Were the session replaced since, the looks below find no node.
	alive := l.session.Alive()
	defer func() {
		switch {
		case err != nil && context.Cause(alive) != nil:
			// Nobody to ask now; whoever waits need not wait for that.
			go l.forget(ctx, dir, guid, l.session.SessionID())
		case err != nil:
			_ = l.leave(ctx, dir, guid, node)
		}
	}()
	fence := int64(0)
	if r.Fenced {
		// The id of the transaction that made the node: ZooKeeper never gives it twice.
		stat, err := l.look(calls, dir+"/"+node)
		if err != nil {
			return nil, err
		}
		fence = stat.Czxid
	}
	asked, err := turn(calls, place{r, began, alive, dir, node})
	if err != nil {
		return nil, err
	}
	return l.hold(ctx, alive, locks.Grant{
		Key: r.Key, Owner: r.Owner, Asked: asked, Lease: l.session.timeout, Fence: fence,
		Renew:   func(ctx context.Context) error { _, err := l.look(ctx, dir+"/"+node); return err },
		Release: func(ctx context.Context) error { return l.leave(ctx, dir, guid, node) },
	}), nil
}

// place is a node in the queue.
type place struct {
	request   locks.Request
	began     time.Time       // of the wait
	alive     context.Context // ends with the node's session, or before
	dir, node string
}

// turn waits for a place's turn. asked is when the look was sent that saw it.
type turn func(context.Context, place) (asked time.Time, err error)

// lookAgain waits until the node is the first.
func (l *zkLock) lookAgain(ctx context.Context, p place) (asked time.Time, err error) {
	for {
		asked, before, err := l.before(ctx, p)
		if err != nil || before == "" {
			return asked, err
		}
		// Woken or not, look again: a waiter before us may have died, and then
		// the lock is still held by somebody further ahead.
		if _, err := l.await(ctx, p.alive, p.request, p.began, p.dir+"/"+before); err != nil {
			return asked, err
		}
	}
}

// before is the node just before ours, and when we asked for it. errNodeGone:
// our session was cut off.
func (l *zkLock) before(ctx context.Context, p place) (asked time.Time, before string, err error) {
	if err := context.Cause(p.alive); err != nil {
		return asked, "", fmt.Errorf("%w: %w", errNodeGone, err)
	}
	asked = time.Now()
	before, err = l.predecessor(ctx, p.dir, p.node)
	return asked, before, err
}

// predecessor returns the node just before ours, "" when ours is the first.
func (l *zkLock) predecessor(ctx context.Context, dir, node string) (string, error) {
	names, err := l.session.list(ctx, dir)
	if err != nil {
		return "", err
	}
	line := inOrder(names)
	for i, name := range line {
		if name == node && i == 0 {
			return "", nil
		}
		if name == node {
			return line[i-1], nil
		}
	}
	return "", errNodeGone
}

// await waits until the node before ours is gone, the connection breaks, or the
// wait is over. It gets the node, for a watch by Exists on a node that is gone already would leak.
func (l *zkLock) await(ctx, alive context.Context, r locks.Request, began time.Time, before string) (asked time.Time, err error) {
	gone, err := do(ctx, func() (<-chan zk.Event, error) {
		_, _, events, err := l.session.GetW(before)
		return events, err
	})
	if errors.Is(err, zk.ErrNoNode) {
		return time.Now(), nil
	}
	if err != nil {
		return time.Time{}, err
	}
	wake := make(chan struct{})
	stop := make(chan struct{})
	defer close(stop)
	go func() {
		select {
		case <-gone:
			close(wake)
		case <-alive.Done():
			close(wake)
		case <-stop:
		}
	}()
	err = locks.Await(ctx, r, began, r.Wait, wake)
	return time.Now(), err
}

// hold trusts the session for one time-out from the last answer, and looks at
// its own node every third of that. It ends when the session is cut off.
func (l *zkLock) hold(ctx, alive context.Context, g locks.Grant) *locks.Hold {
	h := locks.NewHold(ctx, g)
	stop := context.AfterFunc(alive, func() { h.Lose(context.Cause(alive)) })
	h.Then(func() { stop() })
	return h
}

// look finds our node: ErrNotHeld when it is gone.
func (l *zkLock) look(ctx context.Context, node string) (*zk.Stat, error) {
	return do(ctx, func() (*zk.Stat, error) {
		there, stat, err := l.session.Exists(node)
		if err == nil && !there {
			return nil, fmt.Errorf("%w: %w", locks.ErrNotHeld, errNodeGone)
		}
		return stat, err
	})
}

// Clear deletes every node of the key's queue.
func (l *zkLock) Clear(ctx context.Context, key string) error {
	return l.session.empty(ctx, root+key, "")
}

func (*zkLock) Card() locks.Card {
	return locks.Card{
		ID: "zk", Family: "zookeeper", Source: "4.5, 4.6.1; 002, 004", Scope: locks.ScopeShared, Safe: true,
		Core: true, Backends: []string{"mysql", "zookeeper"}, Locker: true,
		Lease: true, Renews: true, Reentrant: true, Fenced: true, Fair: true,
		Title: locks.Text{EN: "ZooKeeper, as Curator does it", ZH: "ZooKeeper 可重入锁（Curator 方式）"},
		Summary: locks.Text{
			EN: "A row of ephemeral sequential nodes; each waiter watches the one before it, and looks again when it goes.",
			ZH: "一排临时顺序节点，每个等待者只监听前一个，它消失后再看一次。",
		},
		Protects: []locks.Hazard{
			locks.Race, locks.ReplicaRace, locks.Crash, locks.Overrun, locks.Failover, locks.MinorityLoss,
			locks.ClockJump, locks.DeadWaiter, locks.SessionExpiry, locks.Cutoff, locks.LostReply, locks.Nesting, locks.Herd,
		},
		Breaks: []locks.Break{{Hazard: locks.Pause, Why: locks.Text{
			EN: "A holder that sleeps past its session still writes when it wakes up, unless the write is fenced.",
			ZH: "持有者停顿超过会话时限，醒来后照样写入，除非写入带栅栏号。",
		}}},
		Tutorial: []locks.Figure{{Note: "Curator", Throughput: 36.6, MedianMS: 2570, Remaining: 0}},
	}
}
