package etcdlock_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"

	"oversell/lab/backend"
	"oversell/lab/rig"
	"oversell/lab/rig/rigtest"
	"oversell/locks"
	"oversell/locks/etcdlock"
	"oversell/stock"
	"oversell/trial/lockstest"
)

var servers *rig.Rig

func TestMain(m *testing.M) {
	rigtest.MainWith(m, rig.Config{Etcd: 1}, func(r *rig.Rig) { servers = r })
}

const lease = 4 * time.Second

// replica returns a lock with its own etcd client, as a separate process would have.
func replica(t *testing.T) (locks.Locker, *clientv3.Client) {
	t.Helper()
	client, err := etcdlock.Open(servers.Addresses().Etcd, etcdlock.Access{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return etcdlock.Etcd(client, lease), client
}

func request(key, owner string, wait time.Duration) locks.Request {
	return locks.Request{Key: key, Owner: owner, Wait: wait}
}

// left returns the etcd keys that are in the queue of the given lock key.
func left(t *testing.T, client *clientv3.Client, key string) []string {
	t.Helper()
	row, err := client.Get(t.Context(), "/oversell/etcd/"+key+"/", clientv3.WithPrefix())
	if err != nil {
		t.Fatal(err)
	}
	var keys []string
	for _, kv := range row.Kvs {
		keys = append(keys, string(kv.Key))
	}
	return keys
}

// TestSharedWithEtcdsOwnMutex checks that the lock and etcd's own mutex (etcdctl lock) use the same
// queue.
func TestSharedWithEtcdsOwnMutex(t *testing.T) {
	t.Parallel()
	ours, client := replica(t)
	session, err := concurrency.NewSession(client, concurrency.WithTTL(4))
	if err != nil {
		t.Fatal(err)
	}
	key := uuid.NewString()
	theirs := concurrency.NewMutex(session, "/oversell/etcd/"+key)
	for range 3 {
		h, err := ours.Acquire(t.Context(), request(key, "ours", time.Minute))
		if err != nil {
			t.Fatal(err)
		}
		if err := theirs.TryLock(t.Context()); !errors.Is(err, concurrency.ErrLocked) {
			t.Fatalf("while we hold it, theirs returns %v", err)
		}
		locked := make(chan error, 1)
		go func() { locked <- theirs.Lock(context.WithoutCancel(t.Context())) }()
		if err := h.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := <-locked; err != nil {
			t.Fatal(err)
		}
		if _, err := ours.Acquire(t.Context(), request(key, "ours", 0)); !errors.Is(err, locks.ErrNotAcquired) {
			t.Fatalf("while they hold it, ours returns %v", err)
		}
		if err := theirs.Unlock(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// TestOtherReplicaHasItsTurn queues one waiter of another replica, and then thirty waiters of this
// replica. The waiter of the other replica must not get the lock last. Each grant must have a
// higher fence than the grant before.
func TestOtherReplicaHasItsTurn(t *testing.T) {
	t.Parallel()
	one, client := replica(t)
	two, _ := replica(t)
	key := uuid.NewString()
	first, err := one.Acquire(t.Context(), request(key, "first", time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var order []string
	last := first.Fence()
	var all sync.WaitGroup
	buy := func(l locks.Locker, who string) {
		all.Go(func() {
			h, err := l.Acquire(t.Context(), request(key, who, time.Minute))
			if err != nil {
				t.Errorf("%s: %v", who, err)
				return
			}
			mu.Lock()
			order = append(order, who)
			if h.Fence() <= last {
				t.Errorf("%s has the fence %d after %d", who, h.Fence(), last)
			}
			last = h.Fence()
			mu.Unlock()
			if err := h.Release(t.Context()); err != nil {
				t.Errorf("%s: %v", who, err)
			}
		})
	}
	buy(two, "other")
	eventually(t, "the other replica has a key in the queue", func() bool { return len(left(t, client, key)) == 2 })
	const own = 30
	for i := range own {
		buy(one, fmt.Sprint("own ", i))
	}
	if err := first.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	all.Wait()
	if len(order) != own+1 || order[own] == "other" {
		t.Errorf("the other replica waited for all waiters of this one: %v", order)
	}
	if keys := left(t, client, key); len(keys) > 0 {
		t.Errorf("left in the queue: %v", keys)
	}
}

// TestForeignKeys writes keys with the lock's prefix that belong to no lock. The foreign keys must
// not block the lock, and Clear must delete them.
func TestForeignKeys(t *testing.T) {
	t.Parallel()
	l, client := replica(t)
	key := uuid.NewString()
	dir := "/oversell/etcd/" + key + "/"
	leased, err := client.Grant(t.Context(), 600)
	if err != nil {
		t.Fatal(err)
	}
	put := func(name string, options ...clientv3.OpOption) {
		t.Helper()
		if _, err := client.Put(t.Context(), dir+name, "foreign", options...); err != nil {
			t.Fatal(err)
		}
	}
	put("config")
	put("694d81417acd4702") // looks like the name of a lock's key, but has no lease
	put("leased", clientv3.WithLease(leased.ID))
	h, err := l.Acquire(t.Context(), request(key, "first", 0))
	if err != nil {
		t.Fatalf("beside keys of others: %v", err)
	}
	put("config-2")
	put("config-3")
	second := make(chan error, 1)
	go func() {
		h, err := l.Acquire(t.Context(), request(key, "second", time.Minute))
		if err == nil {
			err = h.Release(t.Context())
		}
		second <- err
	}()
	other, _ := replica(t)
	if _, err := other.Acquire(t.Context(), request(key, "third", 0)); !errors.Is(err, locks.ErrNotAcquired) {
		t.Errorf("while it is held: %v", err)
	}
	if err := h.Release(t.Context()); err != nil {
		t.Error(err)
	}
	if err := <-second; err != nil {
		t.Error(err)
	}
	if err := l.(locks.Cleaner).Clear(t.Context(), key); err != nil {
		t.Error(err)
	}
	if keys := left(t, client, key); len(keys) > 0 {
		t.Errorf("after a reset: %v", keys)
	}
	if alive, err := client.TimeToLive(t.Context(), leased.ID); err != nil || alive.TTL <= 0 {
		t.Errorf("a reset ended a lease that is not a lock's: %+v, %v", alive, err)
	}
}

// viaLink returns a link to the server, which a test can cut, and a client that uses it.
func viaLink(t *testing.T) (*lockstest.Link, *clientv3.Client) {
	t.Helper()
	link, err := lockstest.NewLink(t.Context(), servers.Addresses().Etcd[0])
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = link.Close() })
	client, err := etcdlock.Open([]string{link.Addr()}, etcdlock.Access{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return link, client
}

// TestReleaseOutage cuts the connection before the release. The lock must be free soon after the
// outage, not after its lease of one hour.
func TestReleaseOutage(t *testing.T) {
	t.Parallel()
	link, client := viaLink(t)
	l, key := etcdlock.Etcd(client, time.Hour), uuid.NewString()
	h, err := l.Acquire(t.Context(), request(key, "holder", 0))
	if err != nil {
		t.Fatal(err)
	}
	link.Cut(true)
	err = h.Release(t.Context())
	link.Cut(false)
	if err == nil || errors.Is(err, locks.ErrNotHeld) {
		t.Errorf("released without a server: %v", err)
	}
	other, _ := replica(t)
	next, err := other.Acquire(t.Context(), request(key, "next", 30*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	if err := next.Release(t.Context()); err != nil {
		t.Error(err)
	}
}

// eventually returns when so() is true. It fails the test after a minute.
func eventually(t *testing.T, what string, so func() bool) {
	t.Helper()
	for deadline := time.Now().Add(5 * time.Minute); !so(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain until %s", what)
		}
	}
}

// TestRaise checks that AdvanceFence returns a fence above the old fence and below the next
// holder's fence. AdvanceFence must fail if the holder's key was deleted.
func TestRaise(t *testing.T) {
	t.Parallel()
	l, client := replica(t)
	key := uuid.NewString()
	h, err := l.Acquire(t.Context(), request(key, "first", 0))
	if err != nil {
		t.Fatal(err)
	}
	before := h.Fence()
	if err := h.AdvanceFence(t.Context(), before); err != nil || h.Fence() <= before {
		t.Errorf("raised from %d to %d: %v", before, h.Fence(), err)
	}
	raised := h.Fence()
	if _, err := client.Delete(t.Context(), "/oversell/etcd/"+key+"/", clientv3.WithPrefix()); err != nil {
		t.Fatal(err)
	}
	if err := h.AdvanceFence(t.Context(), raised); err == nil || h.Fence() != raised {
		t.Errorf("without a key raised to %d: %v", h.Fence(), err)
	}
	_ = h.Release(t.Context())
	next, err := l.Acquire(t.Context(), request(key, "next", time.Minute))
	if err != nil || next.Fence() <= raised {
		t.Fatalf("the next holder has fence %d, %v; want one above %d", next.Fence(), err, raised)
	}
	_ = next.Release(t.Context())
}

// TestWaiterKeepsItsLease lets waiters give up one after the other, the last one first, faster than a lease is
// renewed. The waiter behind them watches another key each time. Its own key must stay.
func TestWaiterKeepsItsLease(t *testing.T) {
	t.Parallel()
	l, client := replica(t)
	key := uuid.NewString()
	hold, err := l.Acquire(t.Context(), request(key, "holder", 0))
	if err != nil {
		t.Fatal(err)
	}
	const waiters = 7
	for i := range waiters {
		go func() { _, _ = l.Acquire(t.Context(), request(key, "waiter", time.Duration(waiters-i)*lease/4)) }()
		eventually(t, "the waiter is in the queue", func() bool { return len(left(t, client, key)) == i+2 })
	}
	last := make(chan error, 1)
	go func() {
		next, err := l.Acquire(t.Context(), request(key, "last", time.Minute))
		if err == nil {
			err = next.Release(t.Context())
		}
		last <- err
	}()
	eventually(t, "the last one is in the queue", func() bool { return len(left(t, client, key)) == waiters+2 })
	own := left(t, client, key)[waiters+1]
	eventually(t, "the others have given up", func() bool {
		keys := left(t, client, key)
		if !slices.Contains(keys, own) {
			t.Fatal("the lease of a waiter has ended")
		}
		return len(keys) == 2
	})
	if err := hold.Release(t.Context()); err != nil {
		t.Error(err)
	}
	if err := <-last; err != nil {
		t.Error(err)
	}
}

// TestHalfOpen makes the connections of a holder and of a waiter half open. Both clients must notice it, and
// use new connections.
func TestHalfOpen(t *testing.T) {
	t.Parallel()
	link, client := viaLink(t)
	behind := etcdlock.Etcd(client, lease)
	other, direct := replica(t)
	key := uuid.NewString()
	hold, err := other.Acquire(t.Context(), request(key, "holder", 0))
	if err != nil {
		t.Fatal(err)
	}
	granted := make(chan error, 1)
	go func() {
		_, err := behind.Acquire(t.Context(), request(key, "waiter", 5*time.Minute))
		granted <- err
	}()
	eventually(t, "the waiter is in the queue", func() bool { return len(left(t, direct, key)) == 2 })
	link.Silence()
	began := time.Now()
	if _, err := behind.Acquire(t.Context(), request(uuid.NewString(), "other", 0)); !errors.Is(err, stock.ErrUnavailable) {
		t.Errorf("on a half-open connection: %v", err)
	}
	if err := hold.Release(t.Context()); err != nil {
		t.Error(err)
	}
	// Not answered within the lease, the waiter has lost its place. It must queue again.
	if err := <-granted; err != nil && !errors.Is(err, stock.ErrUnavailable) {
		t.Errorf("the waiter, after %v: %v", time.Since(began), err)
	}
	eventually(t, "the client has a new connection", func() bool {
		h, err := behind.Acquire(t.Context(), request(uuid.NewString(), "again", 0))
		return err == nil && h.Release(t.Context()) == nil
	})
}

// TestPingWrites: a server whose database is full serves reads, but no sale.
func TestPingWrites(t *testing.T) {
	t.Parallel()
	client, err := etcdlock.Open(rigtest.Start(t, rig.Config{Etcd: 1}).Addresses().Etcd, etcdlock.Access{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	if err := etcdlock.Ping(t.Context(), client); err != nil {
		t.Fatal(err)
	}
	full := &etcdserverpb.AlarmRequest{Action: etcdserverpb.AlarmRequest_ACTIVATE, Alarm: etcdserverpb.AlarmType_NOSPACE}
	if _, err := etcdserverpb.NewMaintenanceClient(client.ActiveConnection()).Alarm(t.Context(), full); err != nil {
		t.Fatal(err)
	}
	if err := etcdlock.Ping(t.Context(), client); err == nil || !strings.Contains(err.Error(), "database space exceeded") {
		t.Errorf("a full database: %v", err)
	}
	if keys, err := client.Get(t.Context(), "", clientv3.WithPrefix(), clientv3.WithCountOnly()); err != nil || keys.Count > 0 {
		t.Errorf("Ping has left a key: %v, %v", keys, err)
	}
}

// TestMemberHangs pauses a member that is not the leader. The others must serve all sales meanwhile.
func TestMemberHangs(t *testing.T) {
	t.Parallel()
	r := rigtest.Start(t, rig.Config{Etcd: 3})
	client, err := etcdlock.Open(r.Addresses().Etcd, etcdlock.Access{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	l := etcdlock.Etcd(client, 10*time.Second)
	for _, s := range r.Servers() {
		leads, err := backend.EtcdLeads(t.Context(), s.Addr())
		if err != nil {
			t.Fatal(err)
		}
		if !leads {
			if err := s.Pause(); err != nil {
				t.Fatal(err)
			}
			break
		}
	}
	for i := range 12 {
		began := time.Now()
		h, err := l.Acquire(t.Context(), request(uuid.NewString(), "owner", 20*time.Second))
		if err != nil {
			t.Fatalf("number %d, after %v: %v", i, time.Since(began), err)
		}
		_ = h.Release(t.Context()) // without an answer, it is repeated in the background
	}
}

// lateWatcher calls before when a watch begins.
type lateWatcher struct {
	clientv3.Watcher
	before func()
}

func (w lateWatcher) Watch(ctx context.Context, key string, options ...clientv3.OpOption) clientv3.WatchChan {
	w.before()
	return w.Watcher.Watch(ctx, key, options...)
}

// TestReleaseBeforeWatch releases the lock after the waiter has listed the queue, and before its watch begins. A watch
// that does not begin at the revision of the list misses this release.
func TestReleaseBeforeWatch(t *testing.T) {
	t.Parallel()
	first, _ := replica(t)
	key := uuid.NewString()
	held, err := first.Acquire(t.Context(), request(key, "first", 0))
	if err != nil {
		t.Fatal(err)
	}
	_, client := replica(t)
	release := sync.OnceFunc(func() {
		if err := held.Release(t.Context()); err != nil {
			t.Error(err)
		}
	})
	client.Watcher = lateWatcher{client.Watcher, release}
	// With this lease, no renewal makes the waiter list the queue again.
	second := etcdlock.Etcd(client, time.Hour)
	h, err := second.Acquire(t.Context(), request(key, "second", 20*time.Second))
	if err != nil {
		t.Fatal("the waiter missed the release: ", err)
	}
	if err := h.Release(t.Context()); err != nil {
		t.Error(err)
	}
}

// lateKV calls before when a request is about to be sent.
type lateKV struct {
	clientv3.KV
	before func()
}

func (l lateKV) Do(ctx context.Context, op clientv3.Op) (clientv3.OpResponse, error) {
	l.before()
	return l.KV.Do(ctx, op)
}

func (l lateKV) Txn(ctx context.Context) clientv3.Txn {
	l.before()
	return l.KV.Txn(ctx)
}

// TestAcquireBetweenRequests lets another client acquire the lock before each request of an acquisition. An acquisition
// that lists the queue before it creates its key does not find the key of the other client.
func TestAcquireBetweenRequests(t *testing.T) {
	t.Parallel()
	first, _ := replica(t)
	for n, sent := 1, 1; n <= sent; n++ {
		_, client := replica(t)
		key, requests := uuid.NewString(), 0
		var other *locks.Lock
		client.KV = lateKV{client.KV, func() {
			if requests++; requests == n {
				var err error
				if other, err = first.Acquire(t.Context(), request(key, "first", 0)); err != nil {
					t.Error(err)
				}
			}
		}}
		h, err := etcdlock.Etcd(client, lease).Acquire(t.Context(), request(key, "second", time.Second))
		sent = requests
		if h != nil && other != nil {
			t.Errorf("both have the lock if one acquires it before request %d of the other", n)
		}
		if h == nil && !errors.Is(err, locks.ErrNotAcquired) {
			t.Error(err)
		}
		for _, lock := range []*locks.Lock{h, other} {
			if lock != nil {
				_ = lock.Release(t.Context()) // of two holders, one may have lost it
			}
		}
		if n > 20 {
			t.Fatal("an acquisition has too many requests")
		}
	}
}
