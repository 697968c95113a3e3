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

// Ephemeral locks with one ephemeral node (tutorial 4.3). Other requests try again every 200 ms.
// The server deletes the node when the holder's session ends, so the lock needs no expiry.
func Ephemeral(s *Session) locks.Locker {
	return &ephemeral{singleNode{s, "/oversell/zk-ephemeral/"}}
}

type ephemeral struct{ singleNode }

// ephemeralPause is the tutorial's pause between two tries.
const ephemeralPause = 200 * time.Millisecond

func (l *ephemeral) Acquire(ctx context.Context, r locks.Request) (*locks.Lock, error) {
	return l.acquire(ctx, r, func(began time.Time) error {
		// DANGER: no event reports that the node was deleted. Every waiter tries again and again, and
		// each try costs the ensemble a write, even if it fails. A released lock stays free until the
		// next try, and chance decides which waiter tries first.
		return locks.SleepRetry(ctx, r, began, ephemeralPause)
	})
}

// singleNode is a lock with one node for each key. The data of the node is a token of its holder.
type singleNode struct {
	session *Session
	root    string
}

func (l *singleNode) acquire(ctx context.Context, r locks.Request, wait func(began time.Time) error) (*locks.Lock, error) {
	return retry(ctx, l.session, r, func(began time.Time) (lock *locks.Lock, err error) {
		for lock == nil && err == nil {
			if lock, err = l.try(ctx, r, began); errors.Is(err, zk.ErrNodeExists) {
				err = wait(began)
			}
		}
		return lock, err
	})
}

// try creates the node once. It returns zk.ErrNodeExists if the lock is held.
func (l *singleNode) try(ctx context.Context, r locks.Request, began time.Time) (*locks.Lock, error) {
	calls, cancel := l.session.bound(ctx, r, began)
	defer cancel()
	token, asked := locks.Token(r.Owner), time.Now()
	release := func(ctx context.Context) error { return l.remove(ctx, r.Key, token) }
	_, err := withFolder(calls, l.session, path.Dir(l.root+r.Key), func() (string, error) {
		return l.session.makeEphemeral(calls, l.root+r.Key, []byte(token), 0, release)
	})
	if err != nil {
		return nil, err
	}
	return l.session.watchOver(ctx, l.session.Alive(), locks.Grant{
		Key: r.Key, Owner: r.Owner, Asked: asked, Lease: l.session.Timeout(),
		Renew:   func(ctx context.Context) error { return l.check(ctx, r.Key, token) },
		Release: func(ctx context.Context) error { return l.session.giveBack(ctx, release) },
	}), nil
}

// check returns ErrNotHeld if the node does not exist or belongs to another holder.
func (l *singleNode) check(ctx context.Context, key, token string) error {
	data, err := do(ctx, l.session, func() ([]byte, error) {
		sent(ctx, "get", l.root+key)
		data, _, err := l.session.Get(l.root + key)
		return data, err
	})
	if err == nil && string(data) != token {
		return fmt.Errorf("%w: %s has another holder", locks.ErrNotHeld, key)
	}
	return lost(err)
}

// remove deletes the node of this holder in two requests, a check and a deletion. Between the two,
// the node can change its holder only if this session ends.
func (l *singleNode) remove(ctx context.Context, key, token string) error {
	if err := l.check(ctx, key, token); err != nil {
		return err
	}
	return l.session.remove(ctx, l.root+key)
}

func (l *singleNode) Clear(ctx context.Context, key string) error {
	return l.session.clear(ctx, l.root+key)
}

func (*ephemeral) Card() api.Card {
	return card(api.Card{
		ID: "zk-ephemeral", Source: "4.3", Slow: true,
		Title: api.Text{EN: "One ephemeral node", ZH: "ZooKeeper 临时节点"},
		Summary: api.Text{
			EN: "The request that creates the node holds the lock; the others try again every 200 ms.",
			ZH: "创建临时节点的请求持有锁，其他请求每 200 毫秒重试。",
		},
		When: api.Text{
			EN: "Not for production: waiters poll, and each try is a write for all the servers. Use `zk` instead.",
			ZH: "不要用于生产环境：等待者不断轮询，每次重试都是对集群的一次写。请改用 `zk`。",
		},
		Protects: []api.Hazard{
			api.Race, api.ReplicaRace, api.Crash, api.Overrun, api.Failover, api.MinorityLoss,
			api.ClockJump, api.SessionExpiry, api.Cutoff, api.LostReply,
			api.Operator, api.Starved, api.WaiterSession,
		},
		Breaks: []api.Break{
			{Hazard: api.Polling, Why: api.Text{
				EN: "Every waiter tries five times a second, and each try is a write for the ensemble.",
				ZH: "每个等待者每秒重试五次，每次重试对集群都是一次写。",
			}},
			{Hazard: api.Nesting, Why: api.Text{
				EN: "The node does not store its owner: an owner that acquires again waits for itself.",
				ZH: "节点不记录持有者：持有者再次加锁，等的是自己。",
			}},
		},
		Tutorial: []api.Figure{{Throughput: 25.7, MedianMS: 49, Remaining: 0}},
	}, api.Pause)
}
