package etcdlock

import (
	"cmp"
	"context"
	"errors"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"oversell/api"
	"oversell/locks"
	"oversell/stock"
)

// Etcd follows etcd's own recipe (client/v3/concurrency, Mutex; etcdctl lock). Each waiter creates
// a key that is attached to a lease, and watches the preceding key. The owner of the oldest key
// holds the lock. The fence is etcd's revision when the holder last listed the queue. Unlike in the
// recipe, each acquisition has its own lease. If the creation of a key gets no answer, the end of
// the lease deletes the key. etcd rejects a write after the end of its lease. A process has at most 32 keys in the
// queue, because each of them costs a renewal every third of its lease: thousands of keys would leave no time for grants.
func Etcd(client *clientv3.Client, lease time.Duration) locks.Locker {
	return locks.Reentrant(locks.Queues(&etcdLock{client, lease}, 32))
}

type etcdLock struct {
	client *clientv3.Client
	lease  time.Duration
}

const root = "/oversell/etcd/"

func (l *etcdLock) Acquire(ctx context.Context, r locks.Request) (*locks.Lock, error) {
	for began := time.Now(); ; {
		lock, err := l.try(ctx, r, began)
		switch {
		case err == nil, errors.Is(err, locks.ErrNotAcquired):
			return lock, err
		case ctx.Err() != nil:
			return nil, locks.NotAcquired(ctx, r.Key, r.Wait)
		case !errors.Is(err, locks.ErrNotHeld) && !l.memberDied(r, began):
			return nil, &stock.Unavailable{Backend: "etcd", Err: err}
		}
		// The key was deleted during the wait, or a member died. Join the queue again with a new key.
		if err := locks.SleepRetry(ctx, r, began, 50*time.Millisecond); err != nil {
			return nil, err
		}
	}
}

// memberDied reports whether another member may answer a failed request, perhaps after an election.
func (l *etcdLock) memberDied(r locks.Request, began time.Time) bool {
	return len(l.client.Endpoints()) > 1 && time.Since(began) < min(r.Wait, l.lease)
}

// try creates a key and waits until no older lock key exists. If try fails, it deletes the key.
func (l *etcdLock) try(ctx context.Context, r locks.Request, began time.Time) (lock *locks.Lock, err error) {
	lease := cmp.Or(r.Lease, l.lease)
	// The calls end after the wait, so that a late answer does not count as an outage.
	calls, cancel := context.WithTimeout(ctx, max(0, r.Wait-time.Since(began))+min(lease, callTimeout))
	defer cancel()
	k, err := grantKey(calls, l.client, root+r.Key+"/", lease)
	if err != nil {
		return nil, err // at worst, a lease without a key remains until it expires
	}
	defer func() {
		if err != nil {
			k.abandon(ctx)
		}
	}()
	before, err := k.queue(calls, r.Owner)
	if err != nil {
		return nil, err
	}
	locks.Trace(ctx, api.Queued, r.Key, r.Owner, 0)
	for before != "" {
		// List the keys again. The watched key may have belonged to a waiter that gave up, while
		// the holder is further ahead in the queue. Or a member that hangs has not sent the event.
		if err = k.watch(calls, r, began, before); err == nil {
			before, err = k.before(calls)
		}
		if err != nil {
			return nil, err
		}
	}
	if time.Since(k.asked) > k.ttl/3 { // an election may have taken most of the lease
		if err := k.renew(calls); err != nil {
			return nil, err
		}
	}
	return locks.NewLock(ctx, locks.Grant{
		Key: r.Key, Owner: r.Owner, Asked: k.asked, Lease: k.ttl, NoRenew: r.NoRenew, Fence: k.seen,
		Renew:        k.renewHeld,
		AdvanceFence: func(ctx context.Context, _ int64) (int64, error) { return k.advanceFence(ctx, r.Owner) },
		Release:      k.release, Again: k.revoke,
	}), nil
}

// Clear revokes each lease in the queue, so that the holder notices its loss, and deletes all keys.
func (l *etcdLock) Clear(ctx context.Context, key string) error {
	queue, err := l.client.Get(ctx, root+key+"/", clientv3.WithPrefix())
	if err != nil {
		return err
	}
	for _, kv := range queue.Kvs {
		if !isLock(root+key+"/", kv) {
			continue
		}
		k := leasedKey{client: l.client, lease: clientv3.LeaseID(kv.Lease)}
		if err := k.revoke(ctx); err != nil && !errors.Is(err, locks.ErrNotHeld) {
			return err
		}
	}
	_, err = l.client.Delete(ctx, root+key+"/", clientv3.WithPrefix())
	return err
}

func (*etcdLock) Card() api.Card {
	return api.Card{
		ID: "etcd", Family: "etcd", Source: "etcd, client/v3/concurrency", Scope: api.ScopeShared, Safe: true,
		Backends: []string{"mysql", "etcd"}, Locker: true,
		Lease: true, LeasePerRequest: true, Renews: true, Reentrant: true, Fenced: true,
		Title: api.Text{EN: "etcd, with the revision as fence", ZH: "etcd 锁（以 revision 作栅栏号）"},
		Summary: api.Text{
			EN: "A queue of keys on leases; the first one created holds the lock, each waiter watches the one before it, and the revision is the fence.",
			ZH: "一排挂在租约上的键，最先创建的持有锁；每个等待者只监听前一个，revision 就是栅栏号。",
		},
		When: api.Text{
			EN: "Choose it if you already run etcd, and the lock must survive a dead server. For many grants per second, use `redis`.",
			ZH: "已经在用 etcd，而且节点宕机也不能丢锁时选它。每秒要加很多次锁，就用 `redis`。",
		},
		Protects: []api.Hazard{
			api.Race, api.ReplicaRace, api.Crash, api.Overrun, api.MinorityLoss,
			api.DeadWaiter, api.SessionExpiry, api.Cutoff, api.LostReply, api.Nesting, api.Herd,
			api.Operator, api.Starved, api.RenewalReply, api.WaiterSession,
		},
		Breaks: []api.Break{{Hazard: api.Pause, Why: api.Text{
			EN: "A holder that is paused beyond its lease still writes when it goes on, unless the write is fenced.",
			ZH: "持有者停顿超过租期，醒来后照样写入，除非写入带栅栏号。",
		}}},
	}
}
