package etcdlock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"oversell/locks"
)

type leasedKey struct {
	client    *clientv3.Client
	dir, name string
	lease     clientv3.LeaseID
	ttl       time.Duration // granted by the server, which may raise the requested TTL
	asked     time.Time     // when the last request was sent that prolonged the lease
	created   int64         // the revision that created the key; it orders the queue
	seen      int64         // etcd's revision when the queue was last listed
}

// grantKey requests a lease for a key. The method queue creates the key later.
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

// queue creates the key and returns the preceding lock key, or "" if this key is the first.
func (k *leasedKey) queue(ctx context.Context, owner string) (before string, err error) {
	put := clientv3.OpPut(k.name, owner, clientv3.WithLease(k.lease))
	var answer *clientv3.TxnResponse
	for range max(1, len(k.client.Endpoints())) { // another member each time: one may hang
		answer, err = k.client.Txn(ctx).Then(put, k.list(2)).Commit()
		if status.Code(err) != codes.Unavailable {
			break
		}
	}
	if err != nil {
		return "", ended(err)
	}
	keys := (*clientv3.GetResponse)(answer.Responses[1].GetResponseRange())
	k.created, k.seen = keys.Kvs[0].CreateRevision, answer.Header.Revision // a try without an answer may have created it
	before, further, err := k.pick(keys)
	if further {
		return k.before(ctx)
	}
	return before, err
}

// list returns the request to read this key and the older keys of the queue, newest first. The
// answer has at most n keys, or all of them if n is 0.
func (k *leasedKey) list(n int64) clientv3.Op {
	return clientv3.OpGet(k.dir, clientv3.WithPrefix(), clientv3.WithLimit(n), clientv3.WithMaxCreateRev(k.created),
		clientv3.WithSort(clientv3.SortByCreateRevision, clientv3.SortDescend), clientv3.WithKeysOnly())
}

// pick returns the lock key before this key in an answer to list, or "". further means that there
// is none, but the answer was cut off at its limit. Without this key, pick returns ErrNotHeld.
func (k *leasedKey) pick(keys *clientv3.GetResponse) (before string, further bool, err error) {
	if len(keys.Kvs) == 0 || string(keys.Kvs[0].Key) != k.name {
		return "", false, k.gone()
	}
	for _, kv := range keys.Kvs[1:] {
		if isLock(k.dir, kv) {
			return string(kv.Key), false, nil
		}
	}
	return "", keys.More, nil
}

// isLock reports whether a lock created the key. Such a key is named after its own lease. Keys of
// other programs are ignored, because a key without a lease would block the queue for ever.
func isLock(dir string, kv *mvccpb.KeyValue) bool {
	return kv.Lease != 0 && string(kv.Key) == fmt.Sprintf("%s%x", dir, kv.Lease)
}

// before returns the preceding lock key from etcd, or "". Without this key, it returns ErrNotHeld.
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

// watch returns when the key other is deleted, the watch breaks, or the wait is over. It also returns after each
// renewal of the lease, a third of it after the last one.
func (k *leasedKey) watch(ctx context.Context, r locks.Request, began time.Time, other string) error {
	watching, stop := context.WithCancel(clientv3.WithRequireLeader(ctx))
	defer stop()
	deleted := k.client.Watch(watching, other, clientv3.WithRev(k.seen+1), clientv3.WithFilterPut())
	disconnected := disconnected(watching, k.client)
	waiting, end := context.WithDeadline(ctx, began.Add(r.Wait))
	defer end()
	renew := time.After(time.Until(k.asked.Add(k.ttl / 3))) // not from now: the predecessors may change faster
	for {
		select {
		case answer, open := <-deleted:
			if len(answer.Events) > 0 || !open {
				return nil
			}
		case <-disconnected:
			return nil
		case <-renew:
			if err := k.renew(ctx); errors.Is(err, locks.ErrNotHeld) {
				return err
			}
			return nil // after another error, the list shows whether a member answers
		case <-waiting.Done():
			return locks.NotAcquired(ctx, r.Key, r.Wait)
		}
	}
}

// renew prolongs the lease. It returns ErrNotHeld if the lease has ended.
func (k *leasedKey) renew(ctx context.Context) error {
	asked := time.Now()
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if _, err := k.client.KeepAliveOnce(ctx, k.lease); err != nil {
		return ended(err)
	}
	k.asked = asked
	return nil
}

// renewHeld renews the lease. It returns ErrNotHeld if the lease has ended or the key was deleted.
func (k *leasedKey) renewHeld(ctx context.Context) error {
	if err := k.renew(ctx); err != nil {
		return err
	}
	_, err := k.before(ctx)
	return err
}

// advanceFence writes the key again, and returns the revision of this write as the new fence.
func (k *leasedKey) advanceFence(ctx context.Context, owner string) (int64, error) {
	return k.ifExists(ctx, clientv3.OpPut(k.name, owner, clientv3.WithLease(k.lease)))
}

// release deletes the key, which the next waiter watches. The lease is ended in the background.
func (k *leasedKey) release(ctx context.Context) error {
	_, err := k.ifExists(ctx, clientv3.OpDelete(k.name))
	if err == nil || errors.Is(err, locks.ErrNotHeld) {
		go k.abandon(ctx)
	}
	return err
}

// ifExists executes op only if the key was not deleted. Otherwise, ifExists returns ErrNotHeld.
func (k *leasedKey) ifExists(ctx context.Context, op clientv3.Op) (revision int64, err error) {
	exists := clientv3.Compare(clientv3.CreateRevision(k.name), "=", k.created)
	answer, err := k.client.Txn(ctx).If(exists).Then(op).Commit()
	if err != nil {
		return 0, err
	}
	if !answer.Succeeded {
		return 0, k.gone()
	}
	return answer.Header.Revision, nil
}

func (k *leasedKey) gone() error {
	return fmt.Errorf("%w: key %s does not exist", locks.ErrNotHeld, k.name)
}

// revoke ends the lease, which deletes the key. It returns ErrNotHeld if there is no such lease.
func (k *leasedKey) revoke(ctx context.Context) error {
	_, err := k.client.Revoke(ctx, k.lease)
	return ended(err)
}

func (k *leasedKey) abandon(ctx context.Context) {
	_ = locks.GiveBack(ctx, time.Time{}, k.revoke)
}

func ended(err error) error {
	if errors.Is(err, rpctypes.ErrLeaseNotFound) {
		return fmt.Errorf("%w: %w", locks.ErrNotHeld, err)
	}
	return err
}
