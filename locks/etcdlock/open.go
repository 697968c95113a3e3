// Package etcdlock holds the strategy that locks in etcd.
package etcdlock

import (
	"context"
	"crypto/tls"
	"embed"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/status"
)

// Source has the files of this folder, for display.
//
//go:embed *.go
var Source embed.FS

// Access is how a client connects: its user, and the configuration of TLS. Both may be empty. A
// member whose address begins with https:// uses TLS without a configuration, too.
type Access struct {
	User, Password string
	TLS            *tls.Config
}

// Open prepares a client for a cluster's members (host:port). It does not wait for a connection.
func Open(members []string, as Access) (*clientv3.Client, error) {
	// The client's default, a hundred attempts, takes longer than most waits.
	attempts := uint(max(2, len(members)))
	if as.User != "" {
		attempts++ // for the request that is rejected since its token has expired
	}
	cfg := clientv3.Config{
		Endpoints: members, TLS: as.TLS,
		Logger:          zap.NewNop(), // the client returns the errors that it would log
		MaxUnaryRetries: attempts,
		// A member that hangs, or a connection that is half open: gRPC closes it after 12 s. It allows no shorter time.
		DialKeepAliveTime: 10 * time.Second, DialKeepAliveTimeout: 2 * time.Second,
		DialOptions: []grpc.DialOption{grpc.WithNoProxy(), grpc.WithConnectParams(grpc.ConnectParams{
			// gRPC's default pause grows to 2 minutes, in which a restarted server would not be used.
			Backoff:           backoff.Config{BaseDelay: 50 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: time.Second},
			MinConnectTimeout: 3 * time.Second,
		})},
	}
	var opened atomic.Bool
	chain := grpc.WithChainUnaryInterceptor(login(cfg, &opened), bounded, record)
	cfg.Username, cfg.Password, cfg.DialOptions = as.User, as.Password, append(slices.Clone(cfg.DialOptions), chain)
	client, err := clientv3.New(cfg)
	if err != nil {
		return nil, fmt.Errorf("etcd address: %w", err)
	}
	opened.Store(true)
	client.Watcher = watcher{client.Watcher}
	return client, nil
}

const authenticate = "/etcdserverpb.Auth/Authenticate"

// login answers the authentication that clientv3.New sends, as a server without users does. The
// client could not be opened otherwise while etcd cannot be reached, or rejects the password. The
// server rejects the first request, since it has no token. The client then authenticates, and
// repeats the request.
//
// login repeats a rejected authentication on a connection of its own. The client sends its old token with every
// request, and etcd 3.4 rejects even an authentication for a token that it has lost, as after a restart. For
// that, the client would authenticate again, and so on without an end. cfg has no user, so no token.
func login(cfg clientv3.Config, opened *atomic.Bool) grpc.UnaryClientInterceptor {
	return func(ctx context.Context, method string, request, answer any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, options ...grpc.CallOption) error {
		if method == authenticate && !opened.Load() {
			return rpctypes.ErrGRPCAuthNotEnabled
		}
		err := invoke(ctx, method, request, answer, conn, options...)
		if method != authenticate || !errors.Is(rpctypes.Error(err), rpctypes.ErrInvalidAuthToken) {
			return err
		}
		without, err := clientv3.New(cfg)
		if err != nil {
			return err
		}
		defer func() { _ = without.Close() }()
		return invoke(ctx, method, request, answer, without.ActiveConnection(), options...)
	}
}

// callTimeout limits each request to a member, until gRPC has closed the connection of one that hangs.
const callTimeout = 2 * time.Second

// bounded returns Unavailable after callTimeout. The client then repeats a read with another member. It does not
// repeat a transaction, which may have been executed. A request fails at once if no member is reachable.
func bounded(ctx context.Context, method string, request, answer any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, options ...grpc.CallOption) error {
	limited, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	err := invoke(limited, method, request, answer, conn, append(options, grpc.WaitForReady(false))...)
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		return status.Errorf(codes.Unavailable, "no answer within %v", callTimeout)
	}
	return err
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

// Ping sends a transaction whose write never applies. Unlike a read, it fails if the database is full, or if this user
// may not write, and like a read if no majority of the members answers.
func Ping(ctx context.Context, client *clientv3.Client) error {
	key := root + "ping"
	never := clientv3.Compare(clientv3.Version(key), "<", 0)
	_, err := client.Txn(ctx).If(never).Then(clientv3.OpPut(key, "")).Commit()
	return err
}
