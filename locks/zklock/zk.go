package zklock

import (
	"context"
	"errors"
	"fmt"
	"net"
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
func ZK(s *Session) locks.Locker { return locks.Reentrant(&interProcess{zkLock: zkLock{s}}) }

type interProcess struct {
	zkLock
	rows rows
}

// zkLock is what all locks of this family have: nodes in a session.
type zkLock struct{ session *Session }

const root = "/oversell/zk/"

func (l *interProcess) Acquire(ctx context.Context, r locks.Request) (*locks.Lock, error) {
	return l.acquire(ctx, r, root+r.Key, l.lookAgain)
}

// acquire queues in dir. The turn is how a node there waits for its own.
func (l *zkLock) acquire(ctx context.Context, r locks.Request, dir string, turn turn) (*locks.Lock, error) {
	began := time.Now()
	for {
		h, err := l.queue(ctx, r, began, dir, turn)
		switch {
		case err == nil || errors.Is(err, locks.ErrNotAcquired):
			return h, err
		case ctx.Err() != nil:
			return nil, locks.NotAcquired(ctx, r.Key, r.Wait)
		case !errors.Is(err, errNodeGone) && !l.hungUp(err, r, began):
			return nil, &stock.Unavailable{Backend: "zookeeper", Err: err}
		}
		// The session expired while we waited, or its server died: a fresh node.
		if err := locks.SleepRetry(ctx, r, began, 50*time.Millisecond); err != nil {
			return nil, err
		}
	}
}

var errNodeGone = errors.New("our node is gone")

// hungUp says whether to ask again because the server that we spoke with has died.
// Another one of the ensemble may go on at once, or when they have elected a leader;
// within our session's life, for what is not back by then is away.
func (l *zkLock) hungUp(err error, r locks.Request, began time.Time) bool {
	var broken *net.OpError // written to a server that was just gone
	again := errors.Is(err, zk.ErrConnectionClosed) || errors.As(err, &broken) ||
		l.session.ensemble && errors.Is(err, zk.ErrNoServer)
	return again && time.Since(began) < min(r.Wait, l.session.timeout)
}

// queue makes a node and waits until it is the first. On failure, no node stays.
func (l *zkLock) queue(ctx context.Context, r locks.Request, began time.Time, dir string, turn turn) (h *locks.Lock, err error) {
	guid := uuid.NewString()
	// One time-out more than the wait: an answer that is late must not pass for a server that is gone.
	calls, cancel := context.WithTimeout(ctx, max(0, r.Wait-time.Since(began))+l.session.timeout)
	defer cancel()
	sent := time.Now()
	node, err := l.create(calls, dir, guid)
	if err != nil {
		return nil, err // create has cleaned up
	}
	locks.Trace(ctx, locks.Queued, r.Key, r.Owner, 0)
	// Not before the node is there, for creating it may have waited for a connection.
	// Were the session replaced since, the looks below find no node.
	alive := l.session.Alive()
	p := &place{request: r, began: began, sent: sent, alive: alive, dir: dir, node: node, done: func() {}, deleted: func(bool) {}}
	defer func() {
		if err == nil {
			return
		}
		p.done()
		if p.cut() != nil {
			// Nobody to ask now; whoever waits need not wait for that.
			go l.forget(ctx, dir, guid, l.session.SessionID())
			p.deleted(false)
			return
		}
		p.deleted(l.leave(ctx, dir, guid, node) == nil)
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
	asked, err := turn(calls, p)
	if err != nil {
		return nil, err
	}
	return l.hold(ctx, alive, locks.Grant{
		Key: r.Key, Owner: r.Owner, Asked: asked, Lease: l.session.timeout, Fence: fence, Verify: p.stands,
		Renew:        func(ctx context.Context) error { _, err := l.look(ctx, dir+"/"+node); return err },
		AdvanceFence: func(ctx context.Context, _ int64) (int64, error) { return l.raise(ctx, dir, node) },
		Release: func(ctx context.Context) error {
			p.done()
			err := l.leave(ctx, dir, guid, node)
			p.deleted(err == nil)
			return err
		},
	}), nil
}

// place is a node in the queue.
type place struct {
	request   locks.Request
	began     time.Time       // of the wait
	sent      time.Time       // the last request that the session has answered
	alive     context.Context // ends with the node's session, or before
	dir, node string
	done      func()          // is called when it waits and holds no more
	deleted   func(sure bool) // and when that was tried
	// stands says whether the node was there when it had its turn; nil: turn has seen to that.
	stands func(context.Context) error
}

// cut is errNodeGone when the session was cut off since.
func (p *place) cut() error {
	if err := context.Cause(p.alive); err != nil {
		return fmt.Errorf("%w: %w", errNodeGone, err)
	}
	return nil
}

// turn waits for a place's turn. asked is when the look was sent that saw it.
type turn func(context.Context, *place) (asked time.Time, err error)

// lookAgain waits until nobody is before the node. It watches the one just before
// it; woken or not, it looks again: a waiter may have died, and then the lock is
// still held by somebody further ahead.
func (l *interProcess) lookAgain(ctx context.Context, p *place) (asked time.Time, err error) {
	s := l.rows.enter(p.dir, p.node)
	p.done, p.deleted = func() { l.rows.leave(s) }, func(sure bool) { l.rows.deleted(s, sure) }
	// What stands before the first of this replica stands before us as well.
	for b := l.rows.before(s); b != nil; b = l.rows.before(s) {
		if _, err := await(ctx, p, b.left); err != nil {
			return asked, err
		}
	}
	for woken := false; ; woken = true {
		ahead, err := l.ahead(ctx, p, s, woken)
		if err != nil {
			return asked, err
		}
		if len(ahead) == 0 {
			return l.first(ctx, p)
		}
		nearest := ahead[len(ahead)-1]
		gone, err := l.watch(ctx, p, nearest)
		switch {
		case errors.Is(err, errForeign):
			l.rows.ignore(s, nearest)
		case err != nil:
			return asked, err
		case gone:
			l.rows.gone(s, nearest)
		}
	}
}

// first is for who has nobody before it. Is its own node still there? If the session has
// answered a moment ago, it lives; then the answer need not be waited for, only be there
// when the holder looks at its hold, before it writes.
func (l *zkLock) first(ctx context.Context, p *place) (asked time.Time, err error) {
	if err := p.cut(); err != nil {
		return asked, err
	}
	asked = time.Now()
	if asked.Sub(p.sent) > l.session.timeout/6 {
		_, err = l.look(ctx, p.dir+"/"+p.node)
		return asked, err
	}
	looked, answer := make(chan struct{}), error(nil)
	go func() {
		defer close(looked)
		_, answer = l.look(context.WithoutCancel(ctx), p.dir+"/"+p.node)
	}()
	p.stands = func(ctx context.Context) error {
		select {
		case <-looked:
			return answer
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return p.sent, nil
}

// ahead is who is before us. The last list is good enough, unless it leaves more
// than one to ask for.
func (l *interProcess) ahead(ctx context.Context, p *place, s *own, woken bool) ([]string, error) {
	if err := p.cut(); err != nil {
		return nil, err
	}
	names, known := l.rows.ahead(s)
	if known && (!woken || len(names) < 2) {
		return names, nil
	}
	sent := time.Now()
	names, err := l.session.list(ctx, p.dir)
	if err != nil {
		return nil, err
	}
	p.sent = sent
	l.rows.learn(s, inOrder(names))
	if names, known = l.rows.ahead(s); !known {
		return nil, errNodeGone
	}
	return names, nil
}

// watch waits until a node is gone, the connection breaks, or the wait is over;
// errForeign: that would be for ever. It gets the node, for a watch by Exists on a node
// that is gone already would leak.
func (l *zkLock) watch(ctx context.Context, p *place, node string) (gone bool, err error) {
	sent := time.Now()
	events, err := do(ctx, func() (<-chan zk.Event, error) {
		_, stat, events, err := l.session.GetW(p.dir + "/" + node)
		if err != nil {
			return nil, err
		}
		return events, foreign(p.dir+"/"+node, stat)
	})
	switch {
	case errors.Is(err, zk.ErrNoNode):
		p.sent = sent
		return true, nil
	case err != nil:
		return false, err
	}
	p.sent = sent
	e, err := await(ctx, p, events)
	return e.Type == zk.EventNodeDeleted, err
}

// await waits for news, but no longer than the session and the wait. Who calls
// it looks once more then.
func await[T any](ctx context.Context, p *place, news <-chan T) (value T, err error) {
	left := p.request.Wait - time.Since(p.began)
	if left <= 0 {
		return value, locks.NotAcquired(ctx, p.request.Key, p.request.Wait)
	}
	over := time.NewTimer(left)
	defer over.Stop()
	select {
	case value = <-news:
	case <-p.alive.Done():
	case <-over.C:
	case <-ctx.Done():
		err = locks.NotAcquired(ctx, p.request.Key, p.request.Wait)
	}
	return value, err
}

// hold trusts the session for one time-out from the last answer, and looks at
// its own node every third of that. It ends when the session is cut off.
func (l *zkLock) hold(ctx, alive context.Context, g locks.Grant) *locks.Lock {
	h := locks.NewLock(ctx, g)
	stop := context.AfterFunc(alive, func() { h.MarkLost(context.Cause(alive)) })
	h.OnRelease(func() { stop() })
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

// raise returns the id of a new transaction, which is above all before it. It is one that
// writes the folder while our node is there: a change of the node itself would wake the
// waiter behind it.
func (l *zkLock) raise(ctx context.Context, dir, node string) (int64, error) {
	return do(ctx, func() (int64, error) {
		answers, err := l.session.Multi(&zk.CheckVersionRequest{Path: dir + "/" + node, Version: -1}, &zk.SetDataRequest{Path: dir, Version: -1})
		if errors.Is(err, zk.ErrNoNode) {
			return 0, fmt.Errorf("%w: %w", locks.ErrNotHeld, errNodeGone)
		}
		if err != nil {
			return 0, err
		}
		return answers[1].Stat.Mzxid, nil
	})
}

// Clear deletes every node of the key's queue.
func (l *interProcess) Clear(ctx context.Context, key string) error {
	return l.session.empty(ctx, root+key, "")
}

func (*interProcess) Card() locks.Card {
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
