// Package etcdlock holds the lock that lives in etcd.
package etcdlock

import (
	"context"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/connectivity"
)

// Open prepares a client for the members of a cluster, given as host:port. It does not
// wait for a connection.
func Open(members []string) (*clientv3.Client, error) {
	client, err := clientv3.New(clientv3.Config{
		Endpoints: members,
		Logger:    zap.NewNop(), // what it says comes back as errors as well
		// A question that does no harm twice goes to each member. A hundred times is the default:
		// who waits for the lock would long have gone before it hears that nobody is there.
		MaxUnaryRetries: uint(max(2, len(members))),
		DialOptions: []grpc.DialOption{grpc.WithConnectParams(grpc.ConnectParams{
			// gRPC's own pauses grow to two minutes: so long would a server be back unseen.
			Backoff:           backoff.Config{BaseDelay: 50 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: time.Second},
			MinConnectTimeout: 3 * time.Second,
		}), grpc.WithChainUnaryInterceptor(failFast)},
	})
	if err != nil {
		return nil, fmt.Errorf("etcd address: %w", err)
	}
	return client, nil
}

// failFast has a question fail when no member can be reached. The client would wait until
// one can, and its caller would never hear what the matter is.
func failFast(ctx context.Context, method string, question, answer any, conn *grpc.ClientConn, ask grpc.UnaryInvoker, options ...grpc.CallOption) error {
	return ask(ctx, method, question, answer, conn, append(options, grpc.WaitForReady(false))...)
}

// broken is closed when the client's connection is, or ctx ends. What is watched for over
// it may come to pass unheard.
func broken(ctx context.Context, client *clientv3.Client) <-chan struct{} {
	conn, gone := client.ActiveConnection(), make(chan struct{})
	go func() {
		defer close(gone)
		if conn.GetState() == connectivity.Ready {
			conn.WaitForStateChange(ctx, connectivity.Ready)
		}
	}()
	return gone
}

// Ping asks for a key that is not there: a majority must answer.
func Ping(ctx context.Context, client *clientv3.Client) error {
	_, err := client.Get(ctx, root, clientv3.WithCountOnly())
	return err
}
