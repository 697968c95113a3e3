package etcdlock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"oversell/locks"
)

// leasedKey is a key in the queue, on a lease of its own.
type leasedKey struct {
	client    *clientv3.Client
	dir, name string
	lease     clientv3.LeaseID
	ttl       time.Duration // the server rounds it up to seconds, and to its minimum
	asked     time.Time     // when the last request was sent that prolonged the lease
	created   int64         // the revision that made the key: its place in the queue
	seen      int64         // the revision of the last list
}

// grantKey gets a lease, and the name of the key that queue makes.
func grantKey(ctx context.Context, client *clientv3.Client, dir string, ttl time.Duration) (*leasedKey, error) {
	asked := time.Now()
	lease, err := client.Grant(ctx, int64((ttl+time.Second-1)/time.Second))
	if err != nil {
		return nil, err
	}
	return &leasedKey{
		client: client, dir: dir, name: fmt.Sprintf("%s%x", dir, lease.ID),
		lease: lease.ID, ttl: time.Duration(lease.TTL) * time.Second, asked: asked,
	}, nil
}

// queue makes the key and returns the one just before it, "" where there is none.
func (k *leasedKey) queue(ctx context.Context, owner string) (before string, err error) {
	put := clientv3.OpPut(k.name, owner, clientv3.WithLease(k.lease))
	answer, err := k.client.Txn(ctx).Then(put, k.list(2)).Commit()
	if err != nil {
		return "", err
	}
	k.created, k.seen = answer.Header.Revision, answer.Header.Revision
	before, further, err := k.pick((*clientv3.GetResponse)(answer.Responses[1].GetResponseRange()))
	if further {
		return k.before(ctx)
	}
	return before, err
}

// list reads the newest keys of the queue that are not newer than this one, n of them or all
// for 0. The first is this key, the second the one before it.
func (k *leasedKey) list(n int64) clientv3.Op {
	return clientv3.OpGet(k.dir, clientv3.WithPrefix(), clientv3.WithLimit(n), clientv3.WithMaxCreateRev(k.created),
		clientv3.WithSort(clientv3.SortByCreateRevision, clientv3.SortDescend), clientv3.WithKeysOnly())
}

// pick returns the key just before this one in an answer to list, "" where there is none.
// further: the answer has foreign keys only, and there are more. ErrNotHeld: this key is gone.
func (k *leasedKey) pick(keys *clientv3.GetResponse) (before string, further bool, err error) {
	if len(keys.Kvs) == 0 || string(keys.Kvs[0].Key) != k.name {
		return "", false, fmt.Errorf("%w: %s is gone", locks.ErrNotHeld, k.name)
	}
	for _, kv := range keys.Kvs[1:] {
		if isLock(k.dir, kv) {
			return string(kv.Key), false, nil
		}
	}
	return "", keys.More, nil
}

// isLock reports whether a lock made the key: its name is its lease. A foreign key without a
// lease would block the lock for ever.
func isLock(dir string, kv *mvccpb.KeyValue) bool {
	return kv.Lease != 0 && string(kv.Key) == fmt.Sprintf("%s%x", dir, kv.Lease)
}

// before lists the queue and returns the key just before this one. ErrNotHeld: this one is gone.
func (k *leasedKey) before(ctx context.Context) (before string, err error) {
	further := true
	for n := int64(2); further && err == nil; n = 0 {
		var answer clientv3.OpResponse
		if answer, err = k.client.Do(ctx, k.list(n)); err != nil {
			return "", err
		}
		k.seen = answer.Get().Header.Revision
		before, further, err = k.pick(answer.Get())
	}
	return before, err
}

// watch returns when another key is deleted after the last list, or can't be watched any more.
// Meanwhile it keeps the lease alive.
func (k *leasedKey) watch(ctx context.Context, r locks.Request, began time.Time, other string) error {
	watching, stop := context.WithCancel(clientv3.WithRequireLeader(ctx))
	defer stop()
	deleted := k.client.Watch(watching, other, clientv3.WithRev(k.seen+1), clientv3.WithFilterPut())
	disconnected := disconnected(watching, k.client)
	over := time.NewTimer(r.Wait - time.Since(began))
	defer over.Stop()
	renew := time.NewTicker(k.ttl / 3)
	defer renew.Stop()
	for {
		select {
		case answer, open := <-deleted:
			if len(answer.Events) > 0 || !open {
				return nil
			}
		case <-disconnected:
			return nil
		case <-renew.C:
			if err := k.renew(ctx); err != nil {
				return err
			}
		case <-over.C:
			return locks.NotAcquired(ctx, r.Key, r.Wait)
		case <-ctx.Done():
			return locks.NotAcquired(ctx, r.Key, r.Wait)
		}
	}
}

// renew prolongs the lease. ErrNotHeld: it is over.
func (k *leasedKey) renew(ctx context.Context) error {
	asked := time.Now()
	if _, err := k.client.KeepAliveOnce(ctx, k.lease); err != nil {
		return ended(err)
	}
	k.asked = asked
	return nil
}

// renewHeld also checks the key, for the lease may outlive it.
func (k *leasedKey) renewHeld(ctx context.Context) error {
	if err := k.renew(ctx); err != nil {
		return err
	}
	_, err := k.before(ctx)
	return err
}

// advanceFence writes the key and returns the revision of that, which is above all before it.
// ErrNotHeld: the key is gone.
func (k *leasedKey) advanceFence(ctx context.Context, owner string) (int64, error) {
	exists := clientv3.Compare(clientv3.CreateRevision(k.name), "=", k.created)
	answer, err := k.client.Txn(ctx).If(exists).Then(clientv3.OpPut(k.name, owner, clientv3.WithLease(k.lease))).Commit()
	if err == nil && !answer.Succeeded {
		err = fmt.Errorf("%w: %s is gone", locks.ErrNotHeld, k.name)
	}
	if err != nil {
		return 0, err
	}
	return answer.Header.Revision, nil
}

// release deletes the key; the next waiter need not wait until the lease has ended, too.
// ErrNotHeld: the key was deleted before, so another one may have held the lock.
func (k *leasedKey) release(ctx context.Context) error {
	exists := clientv3.Compare(clientv3.CreateRevision(k.name), "=", k.created)
	answer, err := k.client.Txn(ctx).If(exists).Then(clientv3.OpDelete(k.name)).Commit()
	if err != nil {
		return err
	}
	go k.abandon(ctx)
	if !answer.Succeeded {
		return fmt.Errorf("%w: %s is gone", locks.ErrNotHeld, k.name)
	}
	return nil
}

// revoke ends the lease, which deletes the key. ErrNotHeld: there was no such lease.
func (k *leasedKey) revoke(ctx context.Context) error {
	_, err := k.client.Revoke(ctx, k.lease)
	return ended(err)
}

// abandon ends the lease of a request that failed, also after its context has ended.
func (k *leasedKey) abandon(ctx context.Context) {
	clean, cancel := locks.CleanUp(ctx)
	defer cancel()
	_ = locks.GiveBack(clean, time.Time{}, k.revoke)
}

// ended returns ErrNotHeld where the server no longer has the lease.
func ended(err error) error {
	if errors.Is(err, rpctypes.ErrLeaseNotFound) {
		return fmt.Errorf("%w: %w", locks.ErrNotHeld, err)
	}
	return err
}
