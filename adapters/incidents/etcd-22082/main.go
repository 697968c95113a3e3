// Command etcd-22082 shows https://github.com/etcd-io/etcd/issues/22082 on ETCD_ENDPOINTS.
//
// The answer to an Unlock is lost after etcd deleted the key. The same session acquires the lock
// again with another Mutex, and the first Mutex repeats its Unlock. The command exits with 1 if this
// deletes the key of the second Mutex.
package main

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"

	"go.etcd.io/etcd/api/v3/version"
	etcd "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"oversell/adapters/library"
)

func main() {
	repeated := "etcd client " + version.Version + ": a repeated Unlock of the first Mutex "
	library.Incident(reproduce, repeated+"left the key of the second, which holds the lock.",
		repeated+"deleted the key of the second, which holds the lock.")
}

func reproduce(ctx context.Context) bool {
	var lose atomic.Bool
	client := library.Must(etcd.New(etcd.Config{
		Endpoints: library.Servers("ETCD_ENDPOINTS", "127.0.0.1:2379"), Logger: zap.NewNop(),
		DialOptions: []grpc.DialOption{grpc.WithChainUnaryInterceptor(loseDelete(&lose))},
	}))
	defer client.Close()
	session := library.Must(concurrency.NewSession(client))
	defer session.Close()

	const key = "incident/etcd-22082"
	first, second := concurrency.NewMutex(session, key), concurrency.NewMutex(session, key)
	library.Check(first.Lock(ctx))
	lose.Store(true)
	if first.Unlock(ctx) == nil {
		library.Check(errors.New("the first Unlock returned no error, although its answer was lost"))
	}
	library.Check(second.Lock(ctx))
	_ = first.Unlock(ctx) // an error is right here: the first Mutex does not hold the lock
	return len(library.Must(client.Get(ctx, second.Key())).Kvs) == 1
}

// loseDelete replaces the answer to the next delete by an error, once, after etcd ran it.
func loseDelete(lose *atomic.Bool) grpc.UnaryClientInterceptor {
	return func(ctx context.Context, method string, req, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, o ...grpc.CallOption) error {
		err := invoke(ctx, method, req, reply, conn, o...)
		deletes := strings.HasSuffix(method, "/DeleteRange") || strings.HasSuffix(method, "/Txn")
		if err == nil && deletes && lose.CompareAndSwap(true, false) {
			return status.Error(codes.Unavailable, "the answer was lost")
		}
		return err
	}
}
