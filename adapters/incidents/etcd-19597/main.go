// Command etcd-19597 shows https://github.com/etcd-io/etcd/issues/19597 on ETCD_ENDPOINTS.
//
// A holder keeps the lock, and the session of a waiter ends: its key in the queue is gone, so it can
// no longer acquire the lock. The command exits with 1 if Lock of the waiter still does not return
// within 10 s.
package main

import (
	"context"
	"time"

	"go.etcd.io/etcd/api/v3/version"
	etcd "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	"go.uber.org/zap"

	"oversell/adapters/library"
)

const key = "incident/etcd-19597"

func main() {
	client := "etcd client " + version.Version
	library.Incident(reproduce, client+": the session of a waiter ended, and its Lock returned.",
		client+": the session of a waiter ended, and its Lock did not return within 10 s.")
}

func reproduce(ctx context.Context) bool {
	client := library.Must(etcd.New(etcd.Config{Endpoints: library.Servers("ETCD_ENDPOINTS", "127.0.0.1:2379"), Logger: zap.NewNop()}))
	defer client.Close()
	holder := library.Must(concurrency.NewSession(client))
	defer holder.Close()
	library.Check(concurrency.NewMutex(holder, key).Lock(ctx))

	waiter := library.Must(concurrency.NewSession(client))
	returned := make(chan error, 1)
	go func() { returned <- concurrency.NewMutex(waiter, key).Lock(ctx) }()
	waitForKeys(ctx, client, 2)
	library.Must(client.Revoke(ctx, waiter.Lease()))
	waitForKeys(ctx, client, 1)
	select {
	case <-returned:
		return true
	case <-time.After(10 * time.Second):
		return false
	}
}

// waitForKeys returns when the lock's queue has n keys.
func waitForKeys(ctx context.Context, client *etcd.Client, n int64) {
	for library.Must(client.Get(ctx, key+"/", etcd.WithPrefix(), etcd.WithCountOnly())).Count != n {
		time.Sleep(10 * time.Millisecond)
	}
}
