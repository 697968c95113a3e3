package explore

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"oversell/locks/etcdlock"
)

// etcdClient is a client's connection with the etcd. It implements the services of the protocol, so
// that clientv3's own code makes the requests and reads the answers. It does not use gRPC, because
// the order in which its goroutines run differs in each repetition. Without an implementation are Compact,
// LeaseTimeToLive and LeaseLeases, which no lock calls.
type etcdClient struct {
	etcdserverpb.KVClient
	etcdserverpb.LeaseClient
	*etcd
	client int
}

// openEtcd returns a client's clientv3.Client.
func (w *world) openEtcd(client int) *clientv3.Client {
	c := &etcdClient{etcd: w.etcd, client: client}
	whole := clientv3.NewCtxClient(context.Background())
	whole.KV = clientv3.NewKVFromKVClient(c, whole)
	whole.Lease = clientv3.NewLeaseFromLeaseClient(c, whole, 5*time.Second)
	whole.Watcher = c
	return whole
}

// retryPause is how long clientv3 waits before it repeats a request. Its random part is left out.
const retryPause = 25 * time.Millisecond

var errDisconnected = status.Error(codes.Unavailable, "the connection is broken")

// ask sends a request, and returns when its answer has arrived. The request notes itself what it
// reads and writes, see touch.
func (c *etcdClient) ask(ctx context.Context, request any, execute func() error) error {
	_, alive := request.(*etcdserverpb.LeaseKeepAliveRequest)
	err := c.w.call(ctx, &message{
		client: c.client, name: etcdlock.Command(request), server: "etcd", background: alive,
		lose: func() { c.disconnect(c.client) }, lost: errDisconnected,
	}, execute)
	if ended := ctx.Err(); ended != nil && errors.Is(err, ended) {
		return status.FromContextError(ended).Err()
	}
	return err
}

// repeat asks twice if the first answer is lost, as clientv3 does with requests that it may repeat.
func (c *etcdClient) repeat(ctx context.Context, request any, execute func() error) error {
	err := c.ask(ctx, request, execute)
	if !errors.Is(err, errDisconnected) {
		return err
	}
	select {
	case <-time.After(retryPause):
		return c.ask(ctx, request, execute)
	case <-ctx.Done():
		return status.FromContextError(ctx.Err()).Err()
	}
}

// transact executes a request of the KV service in a transaction. send is ask or repeat.
func transact[Request, Answer any](
	ctx context.Context, e *etcd, send func(context.Context, any, func() error) error, r Request, execute func(*change, Request) (Answer, error),
) (answer Answer, err error) {
	err = send(ctx, r, func() (err error) {
		c := change{etcd: e}
		answer, err = execute(&c, r)
		c.commit()
		return err
	})
	return answer, err
}

// Range returns keys.
func (c *etcdClient) Range(ctx context.Context, r *etcdserverpb.RangeRequest, _ ...grpc.CallOption) (*etcdserverpb.RangeResponse, error) {
	return transact(ctx, c.etcd, c.repeat, r, (*change).get)
}

// Put stores a key.
func (c *etcdClient) Put(ctx context.Context, r *etcdserverpb.PutRequest, _ ...grpc.CallOption) (*etcdserverpb.PutResponse, error) {
	return transact(ctx, c.etcd, c.ask, r, (*change).put)
}

// DeleteRange deletes keys.
func (c *etcdClient) DeleteRange(ctx context.Context, r *etcdserverpb.DeleteRangeRequest, _ ...grpc.CallOption) (*etcdserverpb.DeleteRangeResponse, error) {
	return transact(ctx, c.etcd, c.ask, r, (*change).deleteRange)
}

// Txn executes a transaction.
func (c *etcdClient) Txn(ctx context.Context, r *etcdserverpb.TxnRequest, _ ...grpc.CallOption) (*etcdserverpb.TxnResponse, error) {
	return transact(ctx, c.etcd, c.ask, r, (*change).transact)
}

// LeaseGrant creates a lease.
func (c *etcdClient) LeaseGrant(ctx context.Context, r *etcdserverpb.LeaseGrantRequest, _ ...grpc.CallOption) (answer *etcdserverpb.LeaseGrantResponse, err error) {
	err = c.repeat(ctx, r, func() (err error) { answer, err = c.grant(c.client, r); return err })
	return answer, err
}

// LeaseRevoke ends a lease.
func (c *etcdClient) LeaseRevoke(ctx context.Context, r *etcdserverpb.LeaseRevokeRequest, _ ...grpc.CallOption) (answer *etcdserverpb.LeaseRevokeResponse, err error) {
	err = c.repeat(ctx, r, func() (err error) { answer, err = c.revoke(r.ID); return err })
	return answer, err
}

// LeaseKeepAlive opens a stream for one keep-alive.
func (c *etcdClient) LeaseKeepAlive(ctx context.Context, _ ...grpc.CallOption) (etcdserverpb.Lease_LeaseKeepAliveClient, error) {
	return &keepAlive{c: c, ctx: ctx}, nil
}

// keepAlive is the stream of a KeepAliveOnce: no lock uses the repetitions of clientv3.
type keepAlive struct {
	grpc.ClientStream
	c    *etcdClient
	ctx  context.Context //nolint:containedctx // it is that of the stream
	sent *etcdserverpb.LeaseKeepAliveRequest
}

// Send sends a keep-alive with the next Recv.
func (k *keepAlive) Send(r *etcdserverpb.LeaseKeepAliveRequest) error { k.sent = r; return nil }

// Recv returns the answer.
func (k *keepAlive) Recv() (answer *etcdserverpb.LeaseKeepAliveResponse, err error) {
	err = k.c.ask(k.ctx, k.sent, func() error { answer = k.c.keepAlive(k.sent.ID); return nil })
	return answer, err
}

// Context returns the context of the stream.
func (k *keepAlive) Context() context.Context { return k.ctx }

// CloseSend does nothing.
func (*keepAlive) CloseSend() error { return nil }

// Watch creates a watch. Like that of clientv3, it returns when the server has it.
func (c *etcdClient) Watch(ctx context.Context, key string, options ...clientv3.OpOption) clientv3.WatchChan {
	op := clientv3.OpGet(key, options...)
	w := &etcdWatch{
		news: newNews(), client: c.client, key: op.KeyBytes(), end: op.RangeBytes(), from: op.Rev(),
		noPut: reflect.ValueOf(op).FieldByName("filterPut").Bool(), // which clientv3 does not export
	}
	events := make(chan clientv3.WatchResponse)
	r := &etcdserverpb.WatchCreateRequest{Key: w.key, RangeEnd: w.end}
	err := c.ask(ctx, r, func() error {
		// A watch that names its revision gets the same events before and after a write.
		if w.from == 0 {
			c.w.touch("etcd keys", false)
			w.from = c.revision + 1
		}
		w.notify(c.history)
		c.watches = append(c.watches, w)
		return nil
	})
	if err != nil {
		close(events)
		return events
	}
	go c.forward(ctx, w, events)
	return events
}

// forward sends the events of a watch to its client, until the client ends it or the connection breaks.
func (c *etcdClient) forward(ctx context.Context, w *etcdWatch, to chan<- clientv3.WatchResponse) {
	defer close(to)
	defer c.forget(w)
	for {
		c.w.mu.Lock()
		client, changed, broken := c.w.clients[c.client], w.changed, w.broken
		running := client.running
		next := clientv3.WatchResponse{Header: *c.header(c.revision)}
		if !client.paused {
			next.Events, w.pending = events(w.pending), nil
		} else {
			changed = running
		}
		c.w.mu.Unlock()
		switch {
		case len(next.Events) > 0:
			select {
			case to <- next:
			case <-ctx.Done():
				return
			}
			continue
		case broken && !client.paused:
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

func events(all []*mvccpb.Event) (converted []*clientv3.Event) {
	for _, e := range all {
		converted = append(converted, (*clientv3.Event)(e))
	}
	return converted
}

func (c *etcdClient) forget(w *etcdWatch) {
	c.w.mu.Lock()
	defer c.w.mu.Unlock()
	c.watches = slices.DeleteFunc(c.watches, func(other *etcdWatch) bool { return other == w })
}

// RequestProgress does nothing.
func (c *etcdClient) RequestProgress(context.Context) error { return nil }

// Close does nothing: the contexts of the watches end them.
func (c *etcdClient) Close() error { return nil }
