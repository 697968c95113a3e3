package etcdlock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"oversell/locks"
	"oversell/stock"
)

// Etcd is a lock as etcd's own recipe has it (client/v3/concurrency, Mutex; etcdctl lock):
// every waiter has a key on a lease, and the one that was created first holds the lock.
// etcd counts each change; the number at which we had our turn, the revision, is the fence.
//
// Here each acquisition has a lease of its own. Whatever is not known of it, ending its
// lease ends it: a write that arrives later finds no lease and is refused.
func Etcd(client *clientv3.Client, lease time.Duration) locks.Locker {
	return locks.Reentrant(locks.Queue(&etcdLock{client, lease}))
}

type etcdLock struct {
	client *clientv3.Client
	lease  time.Duration
}

const root = "/oversell/etcd/"

// place is a key in the row of those who want the lock, or have it.
type place struct {
	dir, key string
	lease    clientv3.LeaseID
	life     time.Duration // of the lease; the server has whole seconds, and a least one
	asked    time.Time     // when the last word that prolonged the lease was sent
	created  int64         // the revision that made the key: its rank in the row
	seen     int64         // the revision of the last look
	fence    int64
}

func (l *etcdLock) Acquire(ctx context.Context, r locks.Request) (*locks.Lock, error) {
	for began := time.Now(); ; {
		h, err := l.queue(ctx, r, began)
		switch {
		case err == nil, errors.Is(err, locks.ErrNotAcquired):
			return h, err
		case ctx.Err() != nil:
			return nil, locks.NotAcquired(ctx, r.Key, r.Wait)
		case !errors.Is(err, locks.ErrNotHeld) && !l.another(r, began):
			return nil, &stock.Unavailable{Backend: "etcd", Err: err}
		}
		// Our key went while we waited, or a member died: once more, from the end of the row.
		if err := locks.SleepRetry(ctx, r, began, 50*time.Millisecond); err != nil {
			return nil, err
		}
	}
}

// another says whether another member may answer: at once, or when they have elected a
// leader. What is not back within a lease is away.
func (l *etcdLock) another(r locks.Request, began time.Time) bool {
	return len(l.client.Endpoints()) > 1 && time.Since(began) < min(r.Wait, l.lease)
}

// queue makes a key and waits until it is the first. On failure, no key stays.
func (l *etcdLock) queue(ctx context.Context, r locks.Request, began time.Time) (h *locks.Lock, err error) {
	lease := cmp.Or(r.Lease, l.lease)
	// One lease more than the wait: an answer that is late must not pass for a server that is gone.
	calls, cancel := context.WithTimeout(ctx, max(0, r.Wait-time.Since(began))+lease)
	defer cancel()
	asked := time.Now()
	granted, err := l.client.Grant(calls, int64((lease+time.Second-1)/time.Second))
	if err != nil {
		return nil, err // at worst a lease without a key, which ends by itself
	}
	p := &place{dir: root + r.Key + "/", lease: granted.ID, life: time.Duration(granted.TTL) * time.Second, asked: asked}
	p.key = fmt.Sprintf("%s%x", p.dir, granted.ID)
	defer func() {
		if err != nil {
			clean, done := locks.CleanUp(ctx)
			defer done()
			_ = locks.GiveBack(clean, time.Time{}, func(ctx context.Context) error { return l.free(ctx, p) })
		}
	}()
	put := clientv3.OpPut(p.key, r.Owner, clientv3.WithLease(p.lease))
	answer, err := l.client.Txn(calls).Then(put, p.last(2)).Commit()
	if err != nil {
		return nil, err
	}
	locks.Trace(ctx, locks.Queued, r.Key, r.Owner, 0)
	revision := answer.Header.Revision
	p.created, p.seen = revision, revision
	before, further, err := p.before((*clientv3.GetResponse)(answer.Responses[1].GetResponseRange()))
	if further {
		before, err = l.look(calls, p)
	}
	for err == nil && before != "" {
		// Woken or not, it looks again: a waiter may have died, and then the lock is still
		// held by somebody further ahead.
		if err = l.wait(calls, r, began, p, before); err == nil {
			before, err = l.look(calls, p)
		}
	}
	if err == nil && time.Since(p.asked) > p.life/3 {
		err = l.renew(calls, p) // an election may have taken what we could trust
	}
	if err != nil {
		return nil, err
	}
	// Not the revision that made the key, as others do: those before us may have passed the
	// lock on since, and each time has a revision.
	p.fence = p.seen
	return locks.NewLock(ctx, l.grant(r, p)), nil
}

// last asks for the last n in the row, 0 for all; of those that were there when our key was
// made, the last two are the one before it and itself.
func (p *place) last(n int64) clientv3.Op {
	return clientv3.OpGet(p.dir, clientv3.WithPrefix(), clientv3.WithLimit(n), clientv3.WithMaxCreateRev(p.created),
		clientv3.WithSort(clientv3.SortByCreateRevision, clientv3.SortDescend), clientv3.WithKeysOnly())
}

// before is the key just before ours in an answer to last, "" when there is none, and whether
// to look further: only keys that no lock made are in the answer, and there are more.
func (p *place) before(row *clientv3.GetResponse) (before string, further bool, err error) {
	if len(row.Kvs) == 0 || string(row.Kvs[0].Key) != p.key {
		return "", false, fmt.Errorf("%w: %s is gone", locks.ErrNotHeld, p.key)
	}
	for _, kv := range row.Kvs[1:] {
		if isPlace(p.dir, kv) {
			return string(kv.Key), false, nil
		}
	}
	return "", row.More, nil
}

// isPlace reports whether a lock made the key: it is named by its lease. A key without a
// lease would keep everybody waiting for ever.
func isPlace(dir string, kv *mvccpb.KeyValue) bool {
	return kv.Lease != 0 && string(kv.Key) == fmt.Sprintf("%s%x", dir, kv.Lease)
}

// look asks who stands before us now. ErrNotHeld: we don't stand there ourselves.
func (l *etcdLock) look(ctx context.Context, p *place) (before string, err error) {
	further := true
	for n := int64(2); further && err == nil; n = 0 {
		var answer clientv3.OpResponse
		if answer, err = l.client.Do(ctx, p.last(n)); err != nil {
			return "", err
		}
		p.seen = answer.Get().Header.Revision
		before, further, err = p.before(answer.Get())
	}
	return before, err
}

// wait returns when a key is gone that the last look saw, or when it can't be watched any
// more. Meanwhile it keeps our lease alive.
func (l *etcdLock) wait(ctx context.Context, r locks.Request, began time.Time, p *place, key string) error {
	watching, stop := context.WithCancel(clientv3.WithRequireLeader(ctx))
	defer stop()
	gone, cut := l.client.Watch(watching, key, clientv3.WithRev(p.seen+1), clientv3.WithFilterPut()), broken(watching, l.client)
	over := time.NewTimer(r.Wait - time.Since(began))
	defer over.Stop()
	renew := time.NewTicker(p.life / 3)
	defer renew.Stop()
	for {
		select {
		case news, open := <-gone:
			if len(news.Events) > 0 || !open {
				return nil
			}
		case <-cut:
			return nil
		case <-renew.C:
			if err := l.renew(ctx, p); err != nil {
				return err
			}
		case <-over.C:
			return locks.NotAcquired(ctx, r.Key, r.Wait)
		case <-ctx.Done():
			return locks.NotAcquired(ctx, r.Key, r.Wait)
		}
	}
}

// renew prolongs the lease; ErrNotHeld when it is over.
func (l *etcdLock) renew(ctx context.Context, p *place) error {
	asked := time.Now()
	if _, err := l.client.KeepAliveOnce(ctx, p.lease); err != nil {
		return over(err)
	}
	p.asked = asked
	return nil
}

func (l *etcdLock) grant(r locks.Request, p *place) locks.Grant {
	return locks.Grant{
		Key: r.Key, Owner: r.Owner, Asked: p.asked, Lease: p.life, Fence: p.fence,
		Renew: func(ctx context.Context) error {
			if err := l.renew(ctx, p); err != nil {
				return err
			}
			_, err := l.look(ctx, p) // the lease may live on without its key
			return err
		},
		AdvanceFence: func(ctx context.Context, _ int64) (int64, error) { return l.put(ctx, p, r.Owner) },
		Release:      func(ctx context.Context) error { return l.release(ctx, p) },
		Again:        func(ctx context.Context) error { return l.free(ctx, p) },
	}
}

// put writes the owner into our key and returns the revision of that, which is above all
// before it. ErrNotHeld: the key is gone.
func (l *etcdLock) put(ctx context.Context, p *place, owner string) (int64, error) {
	ours := clientv3.Compare(clientv3.CreateRevision(p.key), "=", p.created)
	answer, err := l.client.Txn(ctx).If(ours).Then(clientv3.OpPut(p.key, owner, clientv3.WithLease(p.lease))).Commit()
	if err == nil && !answer.Succeeded {
		err = fmt.Errorf("%w: %s is gone", locks.ErrNotHeld, p.key)
	}
	if err != nil {
		return 0, err
	}
	return answer.Header.Revision, nil
}

// release frees the lock. ErrNotHeld: somebody deleted our key meanwhile, so another one may
// have held the lock; ending the lease would not say so.
func (l *etcdLock) release(ctx context.Context, p *place) error {
	_, gone := l.look(ctx, p)
	if err := l.free(ctx, p); err != nil || errors.Is(gone, locks.ErrNotHeld) {
		return errors.Join(gone, err)
	}
	return nil
}

// free ends the lease, and the key with it; ErrNotHeld when there was none.
func (l *etcdLock) free(ctx context.Context, p *place) error {
	_, err := l.client.Revoke(ctx, p.lease)
	return over(err)
}

// over is ErrNotHeld when the server has forgotten the lease.
func over(err error) error {
	if errors.Is(err, rpctypes.ErrLeaseNotFound) {
		return fmt.Errorf("%w: %w", locks.ErrNotHeld, err)
	}
	return err
}

// Clear ends every lease in the row, so that its holder notices, and deletes what else is there.
func (l *etcdLock) Clear(ctx context.Context, key string) error {
	row, err := l.client.Get(ctx, root+key+"/", clientv3.WithPrefix())
	if err != nil {
		return err
	}
	for _, there := range row.Kvs {
		if !isPlace(root+key+"/", there) {
			continue
		}
		p := place{lease: clientv3.LeaseID(there.Lease)}
		if err := l.free(ctx, &p); err != nil && !errors.Is(err, locks.ErrNotHeld) {
			return err
		}
	}
	_, err = l.client.Delete(ctx, root+key+"/", clientv3.WithPrefix())
	return err
}

func (*etcdLock) Card() locks.Card {
	return locks.Card{
		ID: "etcd", Family: "etcd", Source: "etcd, client/v3/concurrency", Scope: locks.ScopeShared, Safe: true,
		Backends: []string{"mysql", "etcd"}, Locker: true,
		Lease: true, LeasePerRequest: true, Renews: true, Reentrant: true, Fenced: true,
		Title: locks.Text{EN: "etcd, with the revision as fence", ZH: "etcd 锁（以 revision 作栅栏号）"},
		Summary: locks.Text{
			EN: "A row of keys on leases; the first one created holds the lock, each waiter watches the one before it, and the revision is the fence.",
			ZH: "一排挂在租约上的键，最先创建的持有锁；每个等待者只监听前一个，revision 就是栅栏号。",
		},
		Protects: []locks.Hazard{
			locks.Race, locks.ReplicaRace, locks.Crash, locks.Overrun, locks.MinorityLoss,
			locks.DeadWaiter, locks.SessionExpiry, locks.Cutoff, locks.LostReply, locks.Nesting, locks.Herd,
		},
		Breaks: []locks.Break{{Hazard: locks.Pause, Why: locks.Text{
			EN: "A holder that sleeps past its lease still writes when it wakes up, unless the write is fenced.",
			ZH: "持有者停顿超过租期，醒来后照样写入，除非写入带栅栏号。",
		}}},
	}
}
