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
)

// Open prepares a client for the members of a cluster, given as host:port. It does not
// wait for a connection.
func Open(members []string) (*clientv3.Client, error) {
	client, err := clientv3.New(clientv3.Config{
		Endpoints: members,
		Logger:    zap.NewNop(), // what it says comes back as errors as well
		DialOptions: []grpc.DialOption{grpc.WithConnectParams(grpc.ConnectParams{
			// gRPC's own pauses grow to two minutes: so long would a server be back unseen.
			Backoff:           backoff.Config{BaseDelay: 50 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: time.Second},
			MinConnectTimeout: 3 * time.Second,
		})},
	})
	if err != nil {
		return nil, fmt.Errorf("etcd address: %w", err)
	}
	return client, nil
}

// Ping asks for a key that is not there: a majority must answer.
func Ping(ctx context.Context, client *clientv3.Client) error {
	_, err := client.Get(ctx, root, clientv3.WithCountOnly())
	return err
}
