package etcdlock

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"

	"oversell/stock"
)

// record records a request, see stock.Commands.
func record(ctx context.Context, method string, request, answer any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, options ...grpc.CallOption) error {
	stock.Sent(ctx, func() string { return cmp.Or(Command(request), method) })
	return invoke(ctx, method, request, answer, conn, options...)
}

// watcher records watches. All watches share one gRPC stream, so an interceptor cannot record them.
type watcher struct{ clientv3.Watcher }

// Watch records the watch and starts it.
func (w watcher) Watch(ctx context.Context, key string, options ...clientv3.OpOption) clientv3.WatchChan {
	stock.Sent(ctx, func() string { return "watch " + key })
	return w.Watcher.Watch(ctx, key, options...)
}

// Command returns the request as etcdctl would write it, or "" for a request that no lock sends.
func Command(request any) string {
	switch r := request.(type) {
	case *etcdserverpb.LeaseGrantRequest:
		return fmt.Sprintf("lease grant %d", r.TTL)
	case *etcdserverpb.LeaseRevokeRequest:
		return fmt.Sprintf("lease revoke %x", r.ID)
	case *etcdserverpb.LeaseKeepAliveRequest:
		return fmt.Sprintf("lease keep-alive %x", r.ID)
	case *etcdserverpb.WatchCreateRequest:
		return "watch " + string(r.Key)
	case *etcdserverpb.PutRequest:
		return put(r)
	case *etcdserverpb.RangeRequest:
		return get(r)
	case *etcdserverpb.DeleteRangeRequest:
		return "del " + string(r.Key)
	case *etcdserverpb.TxnRequest:
		return txn(r)
	}
	return ""
}

func put(r *etcdserverpb.PutRequest) string {
	text := fmt.Sprintf("put %s %s", r.Key, r.Value)
	if r.Lease != 0 {
		text += fmt.Sprintf(" --lease=%x", r.Lease)
	}
	return text
}

func get(r *etcdserverpb.RangeRequest) string {
	text := "get " + string(r.Key)
	if len(r.RangeEnd) > 0 {
		text += " --prefix"
	}
	if r.Limit > 0 {
		text += fmt.Sprintf(" --limit=%d", r.Limit)
	}
	return text
}

func txn(r *etcdserverpb.TxnRequest) string {
	var conditions, operations []string
	for _, c := range r.Compare {
		conditions = append(conditions, fmt.Sprintf("create(%s) = %d", c.Key, c.GetCreateRevision()))
	}
	for _, o := range r.Success {
		switch {
		case o.GetRequestPut() != nil:
			operations = append(operations, put(o.GetRequestPut()))
		case o.GetRequestRange() != nil:
			operations = append(operations, get(o.GetRequestRange()))
		case o.GetRequestDeleteRange() != nil:
			operations = append(operations, "del "+string(o.GetRequestDeleteRange().Key))
		}
	}
	text := "txn: " + strings.Join(operations, "; ")
	if len(conditions) > 0 {
		text = "txn: if " + strings.Join(conditions, " and ") + " then " + strings.Join(operations, "; ")
	}
	return text
}
