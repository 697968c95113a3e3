package zklock

import (
	"context"
	"errors"
	"fmt"
	"path"
	"time"

	"github.com/go-zookeeper/zk"

	"oversell/api"
	"oversell/locks"
)

// Ephemeral locks with one ephemeral node (tutorial 4.3). The replica that makes it holds the
// lock; the others try again every 200 ms. The node of a dead holder goes with its session,
// so there is no expiry to choose.
func Ephemeral(s *Session) locks.Locker {
	return &ephemeral{singleNode{s, "/oversell/zk-ephemeral/"}}
}

type ephemeral struct{ singleNode }

// ephemeralPause is the tutorial's.
const ephemeralPause = 200 * time.Millisecond

func (l *ephemeral) Acquire(ctx context.Context, r locks.Request) (*locks.Lock, error) {
	began := time.Now()
	return retry(ctx, l.session, r, began, func() (*locks.Lock, error) {
		for {
			lock, err := l.try(ctx, r, began)
			if !errors.Is(err, zk.ErrNodeExists) {
				return lock, err
			}
			// DANGER: no event says that the node is gone. Every waiter tries again and again,
			// and each try is a write for the ensemble, also one that fails. The lock stays free
			// until one of them tries, and chance decides which.
			if err := locks.SleepRetry(ctx, r, began, ephemeralPause); err != nil {
				return nil, err
			}
		}
	})
}

// singleNode is a lock of one node for each key, with a token of its holder in its data.
type singleNode struct {
	session *Session
	root    string
}

// try makes the node once. zk.ErrNodeExists: another one holds the lock.
func (l *singleNode) try(ctx context.Context, r locks.Request, began time.Time) (*locks.Lock, error) {
	calls, cancel := l.session.bound(ctx, r, began)
	defer cancel()
	token, asked := locks.Token(r.Owner), time.Now()
	release := func(ctx context.Context) error { return l.remove(ctx, r.Key, token) }
	create := func() error {
		_, err := l.session.makeEphemeral(calls, l.root+r.Key, []byte(token), 0, release)
		return err
	}
	err := create()
	if isNoNode(err) {
		if err = l.session.mkdir(calls, path.Dir(l.root+r.Key)); err == nil {
			err = create()
		}
	}
	if err != nil {
		return nil, err
	}
	return l.session.watchOver(ctx, l.session.Alive(), locks.Grant{
		Key: r.Key, Owner: r.Owner, Asked: asked, Lease: l.session.timeout,
		Renew:   func(ctx context.Context) error { return l.check(ctx, r.Key, token) },
		Release: func(ctx context.Context) error { return l.session.giveBack(ctx, release) },
	}), nil
}

// check returns ErrNotHeld where the node is gone, or another holder's.
func (l *singleNode) check(ctx context.Context, key, token string) error {
	data, err := do(ctx, func() ([]byte, error) {
		data, _, err := l.session.Get(l.root + key)
		return data, err
	})
	if err == nil && string(data) != token {
		return fmt.Errorf("%w: %s has another holder", locks.ErrNotHeld, key)
	}
	return lost(err)
}

// remove deletes the node of this holder. It checks and deletes in two steps; the node can
// become another holder's between them only when this session ends.
func (l *singleNode) remove(ctx context.Context, key, token string) error {
	if err := l.check(ctx, key, token); err != nil {
		return err
	}
	return l.session.remove(ctx, l.root+key)
}

// Clear deletes the node, whoever holds it.
func (l *singleNode) Clear(ctx context.Context, key string) error {
	if err := l.session.remove(ctx, l.root+key); err != nil && !errors.Is(err, locks.ErrNotHeld) {
		return err
	}
	return nil
}

func (*ephemeral) Card() api.Card {
	return api.Card{
		ID: "zk-ephemeral", Family: "zookeeper", Source: "4.3", Scope: api.ScopeShared, Safe: true,
		Backends: []string{"mysql", "zookeeper"}, Locker: true,
		Lease: true, Renews: true, Slow: true,
		Title: api.Text{EN: "One ephemeral node", ZH: "ZooKeeper 临时节点"},
		Summary: api.Text{
			EN: "Whoever creates the node holds the lock; the others try again every 200 ms.",
			ZH: "谁创建了临时节点谁持有锁，其他人每 200 毫秒重试。",
		},
		Protects: []api.Hazard{
			api.Race, api.ReplicaRace, api.Crash, api.Overrun, api.Failover, api.MinorityLoss,
			api.ClockJump, api.SessionExpiry, api.Cutoff, api.LostReply,
		},
		Breaks: []api.Break{
			{Hazard: api.Polling, Why: api.Text{
				EN: "Every waiter asks five times a second, and each try is a write for the ensemble.",
				ZH: "每个等待者每秒问五次，每次重试对集群都是一次写。",
			}},
			{Hazard: api.Nesting, Why: api.Text{
				EN: "The node does not know its owner: who acquires again waits for himself.",
				ZH: "节点不认持有者：再次加锁就是等自己。",
			}},
			{Hazard: api.Pause, Why: api.Text{
				EN: "A holder that sleeps past its session still writes when it wakes up.",
				ZH: "持有者停顿超过会话时限，醒来后照样写入。",
			}},
		},
		Tutorial: []api.Figure{{Throughput: 25.7, MedianMS: 49, Remaining: 0}},
	}
}
