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

func reproduce() (bool, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	client, err := etcd.New(etcd.Config{Endpoints: library.Servers("ETCD_ENDPOINTS", "127.0.0.1:2379"), Logger: zap.NewNop()})
	if err != nil {
		return false, err
	}
	defer client.Close()
	holder, err := concurrency.NewSession(client)
	if err != nil {
		return false, err
	}
	defer holder.Close()
	if err := concurrency.NewMutex(holder, key).Lock(ctx); err != nil {
		return false, err
	}

	waiter, err := concurrency.NewSession(client)
	if err != nil {
		return false, err
	}
	returned := make(chan error, 1)
	go func() { returned <- concurrency.NewMutex(waiter, key).Lock(ctx) }()
	if err := waitForKeys(ctx, client, 2); err != nil {
		return false, err
	}
	if _, err := client.Revoke(ctx, waiter.Lease()); err != nil {
		return false, err
	}
	if err := waitForKeys(ctx, client, 1); err != nil {
		return false, err
	}
	select {
	case <-returned:
		return true, nil
	case <-time.After(10 * time.Second):
		return false, nil
	}
}

// waitForKeys returns when the lock's queue has n keys.
func waitForKeys(ctx context.Context, client *etcd.Client, n int64) error {
	for {
		keys, err := client.Get(ctx, key+"/", etcd.WithPrefix(), etcd.WithCountOnly())
		if err != nil || keys.Count == n {
			return err
		}
		time.Sleep(10 * time.Millisecond)
	}
}
