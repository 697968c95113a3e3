package explore

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"oversell/lab/rig"
	"oversell/lab/rig/rigtest"
	"oversell/locks/etcdlock"
)

// TestEtcd runs the same scripts on the etcd in memory and on a real one. Both must give the same answers:
// the keys with their revisions, the leases, the errors, and the events. With -v, it writes them.
//
// Left out, because no lock uses it: old revisions, compaction, transactions in a transaction, puts
// that keep the value or the lease, answers with the values before a write, ranges by other revisions than that of
// the creation, conditions other than on the revision of the creation, two changes of a key in one transaction,
// questions about leases, keep-alives that the client repeats, watches without deletions or with the values
// before, their progress notifications and fragments, users, and what differs between the members of a cluster.
func TestEtcd(t *testing.T) {
	addr := rigtest.Start(t, rig.Config{Etcd: 1}).Addresses().Etcd
	for _, script := range etcdScripts() {
		t.Run(script.name, func(t *testing.T) {
			var memory string
			synctest.Test(t, func(t *testing.T) { memory = (&etcdNotes{clients: inMemoryEtcd(t)}).run(t, script.do) })
			sameAnswers(t, memory, (&etcdNotes{clients: realEtcd(t, addr)}).run(t, script.do))
		})
	}
}

// sameAnswers compares what a script has got from a server in memory and from a real one.
func sameAnswers(t *testing.T, memory, really string) {
	t.Helper()
	t.Logf("a real server answers\n%s", really)
	if memory != really || memory == "" {
		t.Errorf("the server in memory answers\n%s", memory)
	}
}

func realEtcd(t *testing.T, addr []string) (clients [2]*clientv3.Client) {
	t.Helper()
	for i := range clients {
		client, err := etcdlock.Open(addr, etcdlock.Access{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = client.Close() })
		clients[i] = client
	}
	return clients
}

// inMemoryEtcd returns two clients of an etcd in memory, whose network delivers everything at once.
func inMemoryEtcd(t *testing.T) (clients [2]*clientv3.Client) {
	t.Helper()
	w := newWorld(len(clients), 0)
	w.over = true
	w.etcd.minTTL = 2 // as that of the real server, by its election time-out
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		for ctx.Err() == nil {
			time.Sleep(tick)
			w.mu.Lock()
			w.etcd.expire(time.Now())
			w.mu.Unlock()
		}
	}()
	for i := range clients {
		clients[i] = w.openEtcd(i)
	}
	t.Cleanup(func() {
		cancel()
		for _, c := range clients {
			_ = c.Close()
		}
		time.Sleep(time.Minute) // clientv3's goroutines end
	})
	return clients
}

// etcdNotes writes down the answers to a script, with revisions and leases that count from its start.
type etcdNotes struct {
	clients [2]*clientv3.Client
	ctx     context.Context //nolint:containedctx // that of the test
	fatal   func(...any)
	dir     string
	base    int64
	leases  []clientv3.LeaseID
	lines   []string
}

func (n *etcdNotes) run(t *testing.T, do func(*etcdNotes)) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	n.ctx, n.fatal, n.dir = ctx, t.Fatal, "/explore/"+uuid.NewString()+"/"
	now, err := n.clients[0].Get(ctx, n.dir)
	if err != nil {
		t.Fatal(err)
	}
	n.base = now.Header.Revision
	do(n)
	for _, id := range n.leases { // so that no lease ends during the next script
		_, _ = n.clients[0].Revoke(ctx, id)
	}
	return strings.Join(n.lines, "\n")
}

func (n *etcdNotes) note(format string, args ...any) {
	n.lines = append(n.lines, fmt.Sprintf(format, args...))
}

func (n *etcdNotes) kv(kv *mvccpb.KeyValue) string {
	if kv == nil {
		return "nothing"
	}
	text := strings.TrimPrefix(string(kv.Key), n.dir) + "=" + string(kv.Value)
	if kv.CreateRevision > 0 { // an event of a deletion has only the key and the revision
		text += fmt.Sprintf(" created %d", kv.CreateRevision-n.base)
	}
	text += fmt.Sprintf(" changed %d version %d", kv.ModRevision-n.base, kv.Version)
	if kv.Lease != 0 {
		text += " lease " + n.lease(clientv3.LeaseID(kv.Lease))
	}
	return text
}

func (n *etcdNotes) lease(id clientv3.LeaseID) string {
	for i, known := range n.leases {
		if known == id {
			return fmt.Sprint(i + 1)
		}
	}
	return "unknown"
}

func (n *etcdNotes) kvs(all []*mvccpb.KeyValue) string {
	var texts []string
	for _, kv := range all {
		texts = append(texts, n.kv(kv))
	}
	return "[" + strings.Join(texts, ", ") + "]"
}

func (n *etcdNotes) got(r *clientv3.GetResponse) string {
	more := ""
	if r.More {
		more = ", more"
	}
	return fmt.Sprintf("get at %d: %d%s %s", r.Header.Revision-n.base, r.Count, more, n.kvs(r.Kvs))
}

func (n *etcdNotes) get(key string, options ...clientv3.OpOption) {
	r, err := n.clients[0].Get(n.ctx, n.dir+key, options...)
	if err != nil {
		n.note("get: %v", err)
		return
	}
	n.note("%s", n.got(r))
}

func (n *etcdNotes) put(key, value string, options ...clientv3.OpOption) {
	r, err := n.clients[0].Put(n.ctx, n.dir+key, value, options...)
	if err != nil {
		n.note("put: %v", err)
		return
	}
	n.note("put at %d", r.Header.Revision-n.base)
}

func (n *etcdNotes) del(key string, options ...clientv3.OpOption) {
	r, err := n.clients[0].Delete(n.ctx, n.dir+key, options...)
	if err != nil {
		n.note("delete: %v", err)
		return
	}
	n.note("delete at %d: %d", r.Header.Revision-n.base, r.Deleted)
}

func (n *etcdNotes) txn(conditions []clientv3.Cmp, then, otherwise []clientv3.Op) {
	r, err := n.clients[0].Txn(n.ctx).If(conditions...).Then(then...).Else(otherwise...).Commit()
	if err != nil {
		n.note("txn: %v", err)
		return
	}
	text := fmt.Sprintf("txn at %d: %t", r.Header.Revision-n.base, r.Succeeded)
	for _, one := range r.Responses {
		switch {
		case one.GetResponseRange() != nil:
			text += "; " + n.got((*clientv3.GetResponse)(one.GetResponseRange()))
		case one.GetResponsePut() != nil:
			text += fmt.Sprintf("; put at %d", one.GetResponsePut().Header.Revision-n.base)
		case one.GetResponseDeleteRange() != nil:
			text += fmt.Sprintf("; delete at %d: %d", one.GetResponseDeleteRange().Header.Revision-n.base, one.GetResponseDeleteRange().Deleted)
		}
	}
	n.note("%s", text)
}

// holds notes whether a condition holds.
func (n *etcdNotes) holds(condition clientv3.Cmp) { n.txn([]clientv3.Cmp{condition}, nil, nil) }

func (n *etcdNotes) grant(ttl int64) clientv3.LeaseID {
	r, err := n.clients[0].Grant(n.ctx, ttl)
	if err != nil {
		n.fatal(err)
	}
	n.leases = append(n.leases, r.ID)
	n.note("grant at %d: %d s", r.Revision-n.base, r.TTL)
	return r.ID
}

func (n *etcdNotes) revoke(id clientv3.LeaseID) {
	r, err := n.clients[0].Revoke(n.ctx, id)
	if err != nil {
		n.note("revoke: %v", err)
		return
	}
	n.note("revoke at %d", r.Header.Revision-n.base)
}

func (n *etcdNotes) keepAlive(id clientv3.LeaseID) {
	r, err := n.clients[0].KeepAliveOnce(n.ctx, id)
	if err != nil {
		n.note("keep-alive: %v", err)
		return
	}
	n.note("keep-alive at %d: %d s", r.Revision-n.base, r.TTL)
}

// watch creates a watch of the second client. next waits until so many events have arrived, and notes
// them: a server may send them in one answer or in several.
func (n *etcdNotes) watch(key string, options ...clientv3.OpOption) (next func(events int), end func()) {
	ctx, cancel := context.WithCancel(clientv3.WithRequireLeader(n.ctx))
	answers := n.clients[1].Watch(ctx, n.dir+key, options...)
	next = func(events int) {
		var texts []string
		for len(texts) < events {
			answer, open := <-answers
			if !open || answer.Err() != nil {
				n.fatal("the watch ended:", answer.Err(), n.lines)
			}
			for _, e := range answer.Events {
				texts = append(texts, fmt.Sprintf("%s %s", e.Type, n.kv(e.Kv)))
			}
		}
		n.note("events: %s", strings.Join(texts, "; "))
	}
	return next, func() {
		cancel()
		for range answers { // events that were on their way
		}
		n.note("the watch is closed")
	}
}

type etcdScript struct {
	name string
	do   func(*etcdNotes)
}

func etcdScripts() []etcdScript {
	prefix := clientv3.WithPrefix()
	return []etcdScript{
		{name: "put, get and delete", do: func(n *etcdNotes) {
			n.get("a")
			n.put("a", "1")
			n.put("a", "2")
			n.get("a")
			n.get("a", clientv3.WithKeysOnly())
			n.del("a")
			n.del("a")
			n.put("a", "3")
			n.get("a")
		}},
		{name: "ranges", do: func(n *etcdNotes) {
			n.put("q/b", "3")
			n.put("q/a", "1")
			n.put("q/c", "2")
			n.put("r", "4")
			n.put("q/b", "5")
			n.get("q/", prefix)
			n.get("q/", prefix, clientv3.WithLimit(2))
			n.get("q/", prefix, clientv3.WithLimit(3))
			n.get("q/", clientv3.WithFirstCreate()...)
			n.get("q/", clientv3.WithLastCreate()...)
			n.get("q/", clientv3.WithFirstKey()...)
			n.get("q/", clientv3.WithLastKey()...)
			n.get("q/", append(clientv3.WithLastCreate(), clientv3.WithMaxCreateRev(n.base+2))...)
			n.get("q/", prefix, clientv3.WithSort(clientv3.SortByCreateRevision, clientv3.SortDescend), clientv3.WithLimit(2))
			n.get("q/", prefix, clientv3.WithMaxCreateRev(n.base+1), clientv3.WithKeysOnly())
			n.get("q/a", clientv3.WithRange(n.dir+"q/c"))
			n.del("q/a", clientv3.WithRange(n.dir+"q/c"))
			n.del("q/", prefix)
			n.get("", prefix)
		}},
		{name: "transactions", do: func(n *etcdNotes) {
			key := func(name string) string { return n.dir + name }
			absent := []clientv3.Cmp{clientv3.Compare(clientv3.CreateRevision(key("a")), "=", 0)}
			branches := func() {
				n.txn(absent, []clientv3.Op{
					clientv3.OpGet(key("a")), clientv3.OpPut(key("a"), "1"), clientv3.OpPut(key("b"), "2"), clientv3.OpGet(key(""), prefix),
				}, []clientv3.Op{clientv3.OpGet(key("a"))})
			}
			branches()
			branches()
			n.put("a", "2")
			for created := range int64(3) {
				n.holds(clientv3.Compare(clientv3.CreateRevision(key("a")), "=", n.base+created))
			}
			n.txn(nil, []clientv3.Op{clientv3.OpDelete(key("none"))}, nil)
			n.txn(nil, []clientv3.Op{clientv3.OpDelete(key("a")), clientv3.OpGet(key(""), prefix), clientv3.OpPut(key("c"), "3"), clientv3.OpGet(key(""), prefix)}, nil)
			n.get("", prefix)
		}},
		{name: "leases", do: func(n *etcdNotes) {
			one := n.grant(60)
			two := n.grant(1)
			n.put("b", "1", clientv3.WithLease(one))
			n.put("a", "1", clientv3.WithLease(one))
			n.put("c", "1", clientv3.WithLease(one))
			n.get("a")
			n.put("c", "2", clientv3.WithLease(two))
			n.put("d", "1", clientv3.WithLease(one))
			n.put("d", "2")
			n.keepAlive(one)
			n.revoke(one)
			n.revoke(one)
			n.keepAlive(one)
			n.put("a", "1", clientv3.WithLease(one))
			n.txn(nil, []clientv3.Op{clientv3.OpPut(n.dir+"x", "1"), clientv3.OpPut(n.dir+"a", "1", clientv3.WithLease(one))}, nil)
			n.get("", prefix)
			n.revoke(two)
			n.revoke(n.grant(60))
			n.get("", prefix)
			if _, err := n.clients[0].Revoke(n.ctx, 99); err != nil {
				n.note("%v", err)
			}
		}},
		{name: "a lease ends", do: func(n *etcdNotes) {
			id := n.grant(2)
			n.put("a", "1", clientv3.WithLease(id))
			n.put("b", "1", clientv3.WithLease(id))
			next, end := n.watch("", prefix)
			for range 3 {
				time.Sleep(time.Second)
				n.keepAlive(id)
			}
			n.get("", prefix)
			next(2)
			n.get("", prefix)
			n.keepAlive(id)
			end()
		}},
		{name: "watches", do: func(n *etcdNotes) {
			n.put("a", "1")
			n.put("b", "1")
			n.del("a")
			past, end := n.watch("a", clientv3.WithRev(n.base+1))
			past(2)
			end()
			deletes, end := n.watch("b", clientv3.WithRev(n.base+2), clientv3.WithFilterPut())
			both, endBoth := n.watch("", prefix)
			n.put("b", "2")
			n.txn(nil, []clientv3.Op{clientv3.OpPut(n.dir+"c", "1"), clientv3.OpDelete(n.dir + "b"), clientv3.OpPut(n.dir+"d", "1")}, nil)
			both(4)
			deletes(1)
			n.del("", prefix)
			both(2)
			id := n.grant(60)
			n.put("f", "1", clientv3.WithLease(id))
			n.put("e", "1", clientv3.WithLease(id))
			n.revoke(id)
			both(4)
			end()
			endBoth()
		}},
	}
}

// TestEtcdRefuses checks that the etcd in memory refuses what it does not have, instead of a wrong answer.
func TestEtcdRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := inMemoryEtcd(t)[0]
		for _, op := range []clientv3.Op{
			clientv3.OpGet("a", clientv3.WithCountOnly()),
			clientv3.OpGet("a", clientv3.WithMinModRev(2)),
			clientv3.OpGet("a", clientv3.WithLastRev()...),
			clientv3.OpPut("a", "1", clientv3.WithPrevKV()),
			clientv3.OpDelete("a", clientv3.WithPrevKV()),
			clientv3.OpTxn([]clientv3.Cmp{clientv3.Compare(clientv3.Value("a"), "=", "1")}, nil, nil),
			clientv3.OpTxn([]clientv3.Cmp{clientv3.Compare(clientv3.Version("a"), "=", 1)}, nil, nil),
			clientv3.OpTxn([]clientv3.Cmp{clientv3.Compare(clientv3.CreateRevision("a"), ">", 1)}, nil, nil),
			clientv3.OpTxn([]clientv3.Cmp{clientv3.Compare(clientv3.CreateRevision("a"), "=", 1).WithPrefix()}, nil, nil),
		} {
			if _, err := client.Do(t.Context(), op); status.Code(err) != codes.Unimplemented {
				t.Errorf("%+v: %v", op, err)
			}
		}
	})
}

// TestEtcdRejoins checks that a client whose lease ends before its key exists begins again.
func TestEtcdRejoins(t *testing.T) {
	if r := complete(t, "etcd", Bounds{Clients: 2, Expiries: 1}, false); r.Aborted > 0 {
		t.Errorf("%d clients give up: %v", r.Aborted, r.Outcomes)
	}
}
