// Command k8s-lease is an adapter for the leader election of Kubernetes, client-go, with a Lease.
// There is no API server: this program stores the Lease in etcd itself, and compares its resource
// version as the API server does.
package main

import (
	"context"
	"encoding/json"
	"strconv"
	"time"

	"github.com/google/uuid"
	etcd "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	coordination "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	typed "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"oversell/adapters/library"
	"oversell/locks"
)

// retryPeriod is 2 s by default, for a LeaseDuration of 15 s. The leases of the laboratory are shorter.
const retryPeriod = 200 * time.Millisecond

func main() {
	client := library.Must(etcd.New(etcd.Config{Endpoints: library.Servers("ETCD_ENDPOINTS", "127.0.0.1:2379"), Logger: zap.NewNop()}))
	hello := library.Hello("client-go leader election", "0.37.2", "https://pkg.go.dev/k8s.io/client-go@v0.37.2/tools/leaderelection", "etcd")
	hello.Capabilities.Lease, hello.Capabilities.Renewal, hello.Capabilities.LossNotice = true, true, true
	library.Serve(hello, &locker{leases: leases{etcd: client}, lease: library.Milliseconds("LEASE_MS", 15*time.Second)})
}

type locker struct {
	library.NoCard
	leases leases
	lease  time.Duration
}

// Acquire runs a candidate of its own. One try ends before the second.
func (l *locker) Acquire(ctx context.Context, r locks.Request) (*locks.Lock, error) {
	lasting, keep, cancel := library.Lasting(ctx, max(r.Wait, retryPeriod))
	led, over := make(chan context.Context, 1), make(chan struct{})
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: &resourcelock.LeaseLock{
			LeaseMeta: meta.ObjectMeta{Namespace: "default", Name: r.Key}, Client: l.leases,
			LockConfig: resourcelock.ResourceLockConfig{Identity: uuid.NewString()},
		},
		ReleaseOnCancel: true, LeaseDuration: l.lease, RenewDeadline: l.lease * 2 / 3, RetryPeriod: retryPeriod,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(leading context.Context) { led <- leading },
			OnStoppedLeading: func() { close(over) },
		},
	})
	if err != nil {
		cancel()
		return nil, err
	}
	go elector.Run(lasting)
	stop := func(ctx context.Context) error {
		cancel()
		select {
		case <-over: // the Lease was released
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	select {
	case leading := <-led:
		if keep() {
			return library.Noticed(ctx, r, leading.Done(), stop), nil
		}
	case <-over:
	}
	return nil, library.Failed(ctx, r, "etcd", true, stop(context.WithoutCancel(ctx)))
}

// Clear deletes the Lease.
func (l *locker) Clear(ctx context.Context, key string) error {
	_, err := l.leases.etcd.Delete(ctx, "/leases/"+key)
	return err
}

// leases stands for the API server. It has the methods that a LeaseLock calls.
type leases struct {
	typed.LeaseInterface
	etcd *etcd.Client
}

func (l leases) Leases(string) typed.LeaseInterface { return l }

func (l leases) Get(ctx context.Context, name string, _ meta.GetOptions) (*coordination.Lease, error) {
	answer, err := l.etcd.Get(ctx, "/leases/"+name)
	if err != nil {
		return nil, err
	}
	if len(answer.Kvs) == 0 {
		return nil, errors.NewNotFound(coordination.Resource("leases"), name)
	}
	lease := new(coordination.Lease)
	err = json.Unmarshal(answer.Kvs[0].Value, lease)
	lease.ResourceVersion = strconv.FormatInt(answer.Kvs[0].ModRevision, 10)
	return lease, err
}

func (l leases) Create(ctx context.Context, lease *coordination.Lease, _ meta.CreateOptions) (*coordination.Lease, error) {
	return l.put(ctx, lease, 0, errors.NewAlreadyExists(coordination.Resource("leases"), lease.Name))
}

func (l leases) Update(ctx context.Context, lease *coordination.Lease, _ meta.UpdateOptions) (*coordination.Lease, error) {
	revision, err := strconv.ParseInt(lease.ResourceVersion, 10, 64)
	if err != nil {
		return nil, err
	}
	return l.put(ctx, lease, revision, errors.NewConflict(coordination.Resource("leases"), lease.Name, nil))
}

// put stores the Lease if its revision in etcd is still this one. Otherwise it returns the error changed.
func (l leases) put(ctx context.Context, lease *coordination.Lease, revision int64, changed error) (*coordination.Lease, error) {
	key := "/leases/" + lease.Name
	text, err := json.Marshal(lease)
	if err != nil {
		return nil, err
	}
	answer, err := l.etcd.Txn(ctx).If(etcd.Compare(etcd.ModRevision(key), "=", revision)).Then(etcd.OpPut(key, string(text))).Commit()
	if err == nil && !answer.Succeeded {
		err = changed
	}
	if err != nil {
		return nil, err
	}
	lease.ResourceVersion = strconv.FormatInt(answer.Header.Revision, 10)
	return lease, nil
}
