package explore

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// etcd is an etcd in memory: its keys, leases and watches. It has what the locks use, and answers as
// a server of version 3.4 or later does. The world's lock protects it.
type etcd struct {
	w        *world
	revision int64
	keys     map[string]*mvccpb.KeyValue
	leases   map[int64]*etcdLease
	granted  map[int]int64   // number of leases by client
	history  []*mvccpb.Event // all events, in the order of their revisions
	watches  []*etcdWatch    // in the order of their creation
	minTTL   int64           // in seconds: a server grants no shorter lease
}

// etcdLease is a lease. The server revokes it after ttl without a keep-alive.
type etcdLease struct {
	client int
	ttl    int64 // in seconds
	ends   time.Time
}

func newEtcd(w *world) *etcd {
	return &etcd{w: w, revision: 1, keys: map[string]*mvccpb.KeyValue{}, leases: map[int64]*etcdLease{}, granted: map[int]int64{}, minTTL: 1}
}

// change is one transaction: all its events get the same revision.
type change struct {
	*etcd
	events []*mvccpb.Event
}

// now returns the revision that a request of the transaction sees.
func (c *change) now() int64 {
	if len(c.events) > 0 {
		return c.revision + 1
	}
	return c.revision
}

// touchLease notes that the move reads or writes a lease.
func (e *etcd) touchLease(id int64, writes bool) {
	if id != 0 {
		e.w.touch(fmt.Sprintf("etcd lease %x", id), writes)
	}
}

// commit makes the revision of the transaction the current one, and notifies the watchers.
func (c *change) commit() {
	c.w.touch("etcd keys", len(c.events) > 0)
	if len(c.events) == 0 {
		return
	}
	c.revision++
	c.history = append(c.history, c.events...)
	for _, w := range c.watches {
		if w.notify(c.events) {
			c.w.wake(w.client)
		}
	}
}

func (e *etcd) header(revision int64) *etcdserverpb.ResponseHeader {
	return &etcdserverpb.ResponseHeader{ClusterId: 1, MemberId: 1, RaftTerm: 1, Revision: revision}
}

func errUnsupported(what string) error {
	return status.Error(codes.Unimplemented, "the explorer's etcd has no "+what)
}

// where returns keys in the order of their names.
func (e *etcd) where(which func(*mvccpb.KeyValue) bool) []*mvccpb.KeyValue {
	all := slices.SortedFunc(maps.Values(e.keys), func(a, b *mvccpb.KeyValue) int { return bytes.Compare(a.Key, b.Key) })
	return slices.DeleteFunc(all, func(kv *mvccpb.KeyValue) bool { return !which(kv) })
}

// within returns the keys of a range.
func (e *etcd) within(key, end []byte) []*mvccpb.KeyValue {
	return e.where(func(kv *mvccpb.KeyValue) bool { return inRange(kv.Key, key, end) })
}

// inRange reports whether a name is in [key, end). Without end, the range is one key; with the end
// "\x00", it has no end.
func inRange(name, key, end []byte) bool {
	if len(end) == 0 {
		return bytes.Equal(name, key)
	}
	return bytes.Compare(name, key) >= 0 && (string(end) == "\x00" || bytes.Compare(name, end) < 0)
}

func (c *change) get(r *etcdserverpb.RangeRequest) (*etcdserverpb.RangeResponse, error) {
	byCreation := r.SortTarget == etcdserverpb.RangeRequest_CREATE
	if r.Revision+r.MinModRevision+r.MaxModRevision+r.MinCreateRevision > 0 || r.CountOnly ||
		!byCreation && r.SortTarget != etcdserverpb.RangeRequest_KEY {
		return nil, errUnsupported("range with these options")
	}
	all := c.within(r.Key, r.RangeEnd)
	answer := &etcdserverpb.RangeResponse{Header: c.header(c.now()), Count: int64(len(all))}
	all = slices.DeleteFunc(all, func(kv *mvccpb.KeyValue) bool {
		return r.MaxCreateRevision > 0 && r.MaxCreateRevision < kv.CreateRevision
	})
	if byCreation {
		slices.SortStableFunc(all, func(a, b *mvccpb.KeyValue) int { return cmp.Compare(a.CreateRevision, b.CreateRevision) })
	}
	if r.SortOrder == etcdserverpb.RangeRequest_DESCEND {
		slices.Reverse(all)
	}
	if r.Limit > 0 && int64(len(all)) > r.Limit {
		all, answer.More = all[:r.Limit], true
	}
	for _, kv := range all {
		seen := *kv
		if r.KeysOnly {
			seen.Value = nil
		}
		answer.Kvs = append(answer.Kvs, &seen)
	}
	return answer, nil
}

// check returns an error if a put cannot be executed.
func (c *change) check(r *etcdserverpb.PutRequest) error {
	c.touchLease(r.Lease, false)
	switch {
	case r.IgnoreLease || r.IgnoreValue || r.PrevKv:
		return errUnsupported("put that keeps or returns what was there")
	case r.Lease != 0 && c.leases[r.Lease] == nil:
		return rpctypes.ErrGRPCLeaseNotFound
	}
	return nil
}

func (c *change) put(r *etcdserverpb.PutRequest) (*etcdserverpb.PutResponse, error) {
	if err := c.check(r); err != nil {
		return nil, err
	}
	revision := c.revision + 1
	kv := &mvccpb.KeyValue{
		Key: slices.Clone(r.Key), Value: slices.Clone(r.Value), Lease: r.Lease,
		CreateRevision: revision, ModRevision: revision, Version: 1,
	}
	if before := c.keys[string(r.Key)]; before != nil {
		kv.CreateRevision, kv.Version = before.CreateRevision, before.Version+1
	}
	c.keys[string(r.Key)] = kv
	c.events = append(c.events, &mvccpb.Event{Type: mvccpb.PUT, Kv: kv})
	return &etcdserverpb.PutResponse{Header: c.header(c.now())}, nil
}

func (c *change) deleteRange(r *etcdserverpb.DeleteRangeRequest) (*etcdserverpb.DeleteRangeResponse, error) {
	if r.PrevKv {
		return nil, errUnsupported("delete that returns what was there")
	}
	all := c.within(r.Key, r.RangeEnd)
	c.remove(all)
	return &etcdserverpb.DeleteRangeResponse{Header: c.header(c.now()), Deleted: int64(len(all))}, nil
}

func (c *change) remove(all []*mvccpb.KeyValue) {
	for _, kv := range all {
		delete(c.keys, string(kv.Key))
		gone := &mvccpb.KeyValue{Key: kv.Key, ModRevision: c.revision + 1}
		c.events = append(c.events, &mvccpb.Event{Type: mvccpb.DELETE, Kv: gone})
	}
}

// transact executes the operations of one branch, or none: a put on a lease that has ended is
// rejected before the first operation.
func (c *change) transact(r *etcdserverpb.TxnRequest) (*etcdserverpb.TxnResponse, error) {
	answer, branch := &etcdserverpb.TxnResponse{Succeeded: true}, r.Success
	for _, condition := range r.Compare {
		holds, err := c.holds(condition)
		if err != nil {
			return nil, err
		}
		if !holds {
			answer.Succeeded, branch = false, r.Failure
		}
	}
	for _, op := range branch {
		if put := op.GetRequestPut(); put != nil {
			if err := c.check(put); err != nil {
				return nil, err
			}
		}
	}
	for _, op := range branch {
		one, err := c.apply(op)
		if err != nil {
			return nil, err
		}
		answer.Responses = append(answer.Responses, one)
	}
	answer.Header = c.header(c.now())
	return answer, nil
}

func (c *change) apply(op *etcdserverpb.RequestOp) (*etcdserverpb.ResponseOp, error) {
	switch op := op.Request.(type) {
	case *etcdserverpb.RequestOp_RequestRange:
		got, err := c.get(op.RequestRange)
		return &etcdserverpb.ResponseOp{Response: &etcdserverpb.ResponseOp_ResponseRange{ResponseRange: got}}, err
	case *etcdserverpb.RequestOp_RequestPut:
		put, err := c.put(op.RequestPut)
		return &etcdserverpb.ResponseOp{Response: &etcdserverpb.ResponseOp_ResponsePut{ResponsePut: put}}, err
	case *etcdserverpb.RequestOp_RequestDeleteRange:
		deleted, err := c.deleteRange(op.RequestDeleteRange)
		return &etcdserverpb.ResponseOp{Response: &etcdserverpb.ResponseOp_ResponseDeleteRange{ResponseDeleteRange: deleted}}, err
	}
	return nil, errUnsupported("transaction in a transaction")
}

// holds evaluates a condition on the revision of a key's creation, which is 0 for a key that does not exist.
func (c *change) holds(condition *etcdserverpb.Compare) (bool, error) {
	if condition.Target != etcdserverpb.Compare_CREATE || condition.Result != etcdserverpb.Compare_EQUAL || len(condition.RangeEnd) > 0 {
		return false, errUnsupported("such a condition")
	}
	created := int64(0)
	if kv := c.keys[string(condition.Key)]; kv != nil {
		created = kv.CreateRevision
	}
	return created == condition.GetCreateRevision(), nil
}

// grant creates a lease. Its id is made of the client and a number, such as a01 for the first lease
// of A: a random one, as that of a real server, would differ in each repetition of a schedule.
func (e *etcd) grant(client int, r *etcdserverpb.LeaseGrantRequest) (*etcdserverpb.LeaseGrantResponse, error) {
	if r.ID != 0 {
		return nil, errUnsupported("lease with an id of the client's")
	}
	e.granted[client]++
	id := int64(0xa+client)<<8 + e.granted[client]
	e.touchLease(id, true)
	l := &etcdLease{client: client, ttl: max(r.TTL, e.minTTL)}
	l.renew()
	e.leases[id] = l
	return &etcdserverpb.LeaseGrantResponse{Header: e.header(e.revision), ID: id, TTL: l.ttl}, nil
}

func (l *etcdLease) renew() { l.ends = time.Now().Add(time.Duration(l.ttl) * time.Second) }

// keepAlive prolongs a lease. For a lease that does not exist, the answer has the TTL 0.
func (e *etcd) keepAlive(id int64) *etcdserverpb.LeaseKeepAliveResponse {
	e.touchLease(id, true)
	answer := &etcdserverpb.LeaseKeepAliveResponse{Header: e.header(e.revision), ID: id}
	if l := e.leases[id]; l != nil {
		l.renew()
		answer.TTL = l.ttl
	}
	return answer
}

// revoke ends a lease, and deletes its keys in one transaction.
func (e *etcd) revoke(id int64) (*etcdserverpb.LeaseRevokeResponse, error) {
	e.touchLease(id, true)
	if e.leases[id] == nil {
		return nil, rpctypes.ErrGRPCLeaseNotFound
	}
	c := change{etcd: e}
	c.remove(e.where(func(kv *mvccpb.KeyValue) bool { return kv.Lease == id }))
	delete(e.leases, id)
	c.commit()
	return &etcdserverpb.LeaseRevokeResponse{Header: e.header(e.revision)}, nil
}

// expire revokes the leases that no keep-alive has prolonged in time.
func (e *etcd) expire(now time.Time) {
	for _, id := range slices.Sorted(maps.Keys(e.leases)) {
		if !now.Before(e.leases[id].ends) {
			_, _ = e.revoke(id)
		}
	}
}

// expiries returns the leases whose end is a fault. The end of a lease of a client that has bought changes
// nothing for the others. The order of the ids is that of the clients.
func (e *etcd) expiries() (all []move) {
	for _, id := range slices.Sorted(maps.Keys(e.leases)) {
		owner := e.leases[id].client
		if client := e.w.clients[owner]; client.done && !client.crashed {
			continue
		}
		all = append(all, expiry(owner, "etcd", fmt.Sprintf("%x", id), func() { _, _ = e.revoke(id) }))
	}
	return all
}

// etcdWatch is a watch. Its events reach the client in the order of their revisions.
type etcdWatch struct {
	news
	client   int
	key, end []byte
	from     int64 // revision
	noPut    bool
	pending  []*mvccpb.Event
	broken   bool
}

// notify adds the events that the client watches. It returns false if there is none.
func (w *etcdWatch) notify(events []*mvccpb.Event) bool {
	before := len(w.pending)
	for _, e := range events {
		filtered := w.noPut && e.Type == mvccpb.PUT
		if inRange(e.Kv.Key, w.key, w.end) && e.Kv.ModRevision >= w.from && !filtered {
			w.pending = append(w.pending, e)
		}
	}
	if len(w.pending) == before {
		return false
	}
	w.change()
	return true
}

// disconnect breaks a client's connection: its watches end, and its requests get no answer.
func (e *etcd) disconnect(client int) {
	e.w.wake(client)
	for _, w := range e.watches {
		if w.client == client {
			w.broken = true
			w.change()
		}
	}
	for _, m := range slices.Clone(e.w.inFlight) {
		if m.client == client && m.server == "etcd" {
			e.w.drop(m)
		}
	}
}
