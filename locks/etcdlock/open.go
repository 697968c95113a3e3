// Package etcdlock holds the strategy that locks in etcd.
package etcdlock

import (
	"context"
	"embed"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/connectivity"
)

// Source has the files of this folder, for display.
//
//go:embed *.go
var Source embed.FS

// Open prepares a client for a cluster's members (host:port). It does not wait for a connection.
func Open(members []string) (*clientv3.Client, error) {
	client, err := clientv3.New(clientv3.Config{
		Endpoints: members,
		Logger:    zap.NewNop(), // the client returns the errors that it would log
		// MaxUnaryRetries limits the attempts. The default, a hundred, takes longer than most waits.
		MaxUnaryRetries: uint(max(2, len(members))),
		DialOptions: []grpc.DialOption{grpc.WithConnectParams(grpc.ConnectParams{
			// gRPC's default pause grows to 2 minutes, in which a restarted server would not be used.
			Backoff:           backoff.Config{BaseDelay: 50 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: time.Second},
			MinConnectTimeout: 3 * time.Second,
		}), grpc.WithChainUnaryInterceptor(failFast, record)},
	})
	if err != nil {
		return nil, fmt.Errorf("etcd address: %w", err)
	}
	client.Watcher = watcher{client.Watcher}
	return client, nil
}

// failFast fails a request at once if no member is reachable, instead of waiting for a member.
func failFast(ctx context.Context, method string, request, answer any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, options ...grpc.CallOption) error {
	return invoke(ctx, method, request, answer, conn, append(options, grpc.WaitForReady(false))...)
}

// disconnected returns a channel that is closed when ctx ends or the connection breaks. A watch on
// a broken connection may miss events.
func disconnected(ctx context.Context, client *clientv3.Client) <-chan struct{} {
	conn, gone := client.ActiveConnection(), make(chan struct{})
	if conn == nil { // a client without gRPC ends its watches when its connection breaks
		return nil
	}
	go func() {
		defer close(gone)
		if conn.GetState() == connectivity.Ready {
			conn.WaitForStateChange(ctx, connectivity.Ready)
		}
	}()
	return gone
}

// Ping reads a key that does not exist. It fails if no majority of the members answers.
func Ping(ctx context.Context, client *clientv3.Client) error {
	_, err := client.Get(ctx, root, clientv3.WithCountOnly())
	return err
}
