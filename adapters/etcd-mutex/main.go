// Command etcd-mutex is an adapter for the Mutex of etcd's client, package concurrency.
package main

import (
	"context"
	"errors"
	"time"

	etcd "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	"go.uber.org/zap"

	"oversell/adapters/library"
	"oversell/locks"
)

func main() {
	servers := library.Servers("ETCD_ENDPOINTS", "127.0.0.1:2379")
	client := library.Must(etcd.New(etcd.Config{Endpoints: servers, Logger: zap.NewNop()}))
	hello := library.Hello("etcd concurrency.Mutex", "3.6.12", "https://pkg.go.dev/go.etcd.io/etcd/client/v3@v3.6.12/concurrency", "etcd")
	c := &hello.Capabilities
	c.Lease, c.Renewal, c.LossNotice = true, true, true // Session.Done is closed when the lease ends
	library.Serve(hello, &locker{client: client, lease: library.Milliseconds("LEASE_MS", time.Minute)})
}

type locker struct {
	library.NoCard
	client *etcd.Client
	lease  time.Duration
}

// Acquire uses a new session, as the documentation's examples do: two requests of one session
// would share its key in the queue, and so the lock.
func (l *locker) Acquire(ctx context.Context, r locks.Request) (*locks.Lock, error) {
	wait := r.Wait
	if wait <= 0 {
		wait = time.Minute
	}
	lasting, keep, cancel := library.Lasting(ctx, wait)
	ttl := int((l.lease + time.Second - 1) / time.Second)
	session, err := concurrency.NewSession(l.client, concurrency.WithTTL(ttl), concurrency.WithContext(lasting))
	if err != nil {
		cancel()
		return nil, library.Failed(ctx, r, "etcd", false, err)
	}
	m := concurrency.NewMutex(session, "/adapter/"+r.Key)
	if r.Wait > 0 {
		err = m.Lock(lasting)
	} else {
		err = m.TryLock(lasting)
	}
	if err == nil && !keep() {
		err = context.Canceled
	}
	if err != nil {
		l.revoke(session)
		cancel()
		return nil, library.Failed(ctx, r, "etcd", errors.Is(err, concurrency.ErrLocked), err)
	}
	return library.Noticed(ctx, r, session.Done(), func(ctx context.Context) error {
		defer cancel()
		return errors.Join(m.Unlock(ctx), session.Close())
	}), nil
}

// revoke ends a session whose context may have ended, so that Close would not revoke its lease.
func (l *locker) revoke(session *concurrency.Session) {
	session.Orphan()
	ctx, cancel := locks.CleanUp(context.Background())
	defer cancel()
	_, _ = l.client.Revoke(ctx, session.Lease())
}

// Clear deletes the keys of the holder and of all waiters.
func (l *locker) Clear(ctx context.Context, key string) error {
	_, err := l.client.Delete(ctx, "/adapter/"+key+"/", etcd.WithPrefix())
	return err
}
