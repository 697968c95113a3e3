package zklock

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/google/uuid"

	"oversell/locks"
)

// node is an ephemeral sequential node of this replica. The server deletes it with the session.
type node struct {
	session   *Session
	dir, name string
	alive     context.Context // ends when the connection breaks, see Session.Alive
}

// errNodeGone says that the node was deleted, or may be deleted soon with its session.
var errNodeGone = errors.New("its node in ZooKeeper was deleted, or its connection broke")

// ours is the data of each node from newNode. A holder's release changes it, see node.pass.
const ours = "oversell"

// newNode creates a node in dir, with a name like Curator's: _c_<GUID>-<kind><sequence>. It returns
// zk.ErrNoNode if the folder does not exist. On failure, no node stays.
func newNode(ctx context.Context, s *Session, dir, kind string) (*node, error) {
	prefix := "_c_" + uuid.NewString() + "-"
	path, err := s.makeEphemeral(ctx, dir+"/"+prefix+kind, []byte(ours), zk.FlagSequence, func(ctx context.Context) error {
		return s.empty(ctx, dir, prefix)
	})
	if err != nil {
		return nil, err
	}
	// Call Alive after the creation, because the creation may have waited for a new connection.
	return &node{s, dir, path[len(dir)+1:], s.Alive()}, nil
}

func (n *node) path() string { return n.dir + "/" + n.name }

func (n *node) cut() error {
	if err := context.Cause(n.alive); err != nil {
		return fmt.Errorf("%w: %w", errNodeGone, err)
	}
	return nil
}

// lock returns the node's Lock. This Lock is trusted for one session time-out from asked. It checks
// its node every third of the time-out, and is lost when the connection breaks.
func (n *node) lock(ctx context.Context, r locks.Request, asked time.Time, fence int64, release func(context.Context) error) *locks.Lock {
	return n.session.watchOver(ctx, n.alive, locks.Grant{
		Key: r.Key, Owner: r.Owner, Asked: asked, Lease: n.session.Timeout(), Fence: fence,
		Renew:        func(ctx context.Context) error { _, err := n.stat(ctx); return err },
		AdvanceFence: func(ctx context.Context, _ int64) (int64, error) { return n.advanceFence(ctx) },
		Release:      release,
	})
}

// stat returns the state of the node. It returns ErrNotHeld if the node does not exist.
func (n *node) stat(ctx context.Context) (*zk.Stat, error) {
	stat, err := n.session.stat(ctx, n.path())
	return stat, lost(err)
}

func lost(err error) error {
	if isNoNode(err) {
		return fmt.Errorf("%w: %w", locks.ErrNotHeld, errNodeGone)
	}
	return err
}

func isNoNode(err error) bool { return errors.Is(err, zk.ErrNoNode) }

// fence returns the id of the transaction that created the node. Later ids are higher.
func (n *node) fence(ctx context.Context) (int64, error) {
	stat, err := n.stat(ctx)
	if err != nil {
		return 0, err
	}
	return stat.Czxid, nil
}

// advanceFence makes a transaction and returns its id, which is higher than all earlier ids. The
// transaction checks the node but writes to its folder. A write to the node would wake a waiter.
func (n *node) advanceFence(ctx context.Context) (int64, error) {
	return do(ctx, n.session, func() (int64, error) {
		answers, err := n.session.multi(ctx, &zk.CheckVersionRequest{Path: n.path(), Version: -1}, &zk.SetDataRequest{Path: n.dir, Version: -1})
		if err != nil {
			return 0, lost(err)
		}
		return answers[1].Stat.Mzxid, nil
	})
}

// release deletes the node. It returns ErrNotHeld if the node does not exist, or its session ended.
func (n *node) release(ctx context.Context) error {
	return n.session.giveBack(ctx, func(ctx context.Context) error { return n.session.remove(ctx, n.path()) })
}

// pass releases the lock. It changes and deletes the node in one transaction, so the next waiter
// receives a change event. The node of a waiter that gave up, or of a session that ended, is only
// deleted. Then the next waiter receives a deletion event.
//
// DANGER: a write of another client to the node, such as Curator's Revoker, looks like a release to
// the next waiter, although the holder still works. Only a fenced write is safe then.
func (n *node) pass(ctx context.Context) error {
	return n.session.giveBack(ctx, func(ctx context.Context) error {
		_, err := do(ctx, n.session, func() ([]zk.MultiResponse, error) {
			return n.session.multi(ctx, &zk.SetDataRequest{Path: n.path(), Version: -1}, &zk.DeleteRequest{Path: n.path(), Version: -1})
		})
		return lost(err)
	})
}

// abandon deletes the node of a failed request, in the background if the connection is broken.
func (n *node) abandon(ctx context.Context) {
	if n.cut() != nil {
		go func() { _ = n.release(ctx) }()
		return
	}
	_ = n.release(ctx)
}

// watch waits until the node at path is changed or deleted, the connection breaks, or the wait is
// over. If released is false, the caller must list the queue again. watch returns errForeign if the
// node belongs to no session. It uses GetW, because ExistsW would leave a watch on a missing node.
func (s *Session) watch(ctx, alive context.Context, r locks.Request, began time.Time, path string) (released bool, err error) {
	passes := false // only a change of our own nodes is a release; Curator's Revoker changes others
	changed, err := do(ctx, s, func() (<-chan zk.Event, error) {
		sent(ctx, "get -w", path)
		data, stat, changed, err := s.GetW(path)
		if err == nil {
			err = foreign(path, stat)
		}
		passes = string(data) == ours
		return changed, err
	})
	if isNoNode(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	event, err := pause(ctx, alive, r, began, changed)
	return passes && event.Type == zk.EventNodeDataChanged, err
}

// numbered is the name of a lock's node, and its sequence number.
type numbered struct {
	name string
	n    int32
}

// numberedNodes returns the nodes of a lock among the names in its folder.
func numberedNodes(names []string) []numbered {
	nodes := make([]numbered, 0, len(names))
	for _, name := range names {
		if n, ok := sequence(name); ok {
			nodes = append(nodes, numbered{name, n})
		}
	}
	return nodes
}

// nearestBefore returns the name with the highest sequence number below that of own, or "". found
// means that own is among the nodes. The nodes are not sorted, because there may be thousands.
func nearestBefore(own string, nodes []numbered, skip func(name string) bool) (before string, found bool) {
	ours, _ := sequence(own)
	nearest := int32(0)
	for _, node := range nodes {
		switch {
		case node.n == ours:
			found = found || node.name == own
		case !earlier(node.n, ours), before != "" && earlier(node.n, nearest), skip(node.name):
		default:
			before, nearest = node.name, node.n
		}
	}
	return before, found
}

// sequence parses the number after "-lock-" in a name that begins with "_c_". The number has ten
// digits, with a minus sign once the server's counter has wrapped.
func sequence(name string) (int32, bool) {
	const digits = 10
	i := strings.LastIndex(name, "-lock-")
	if i < 0 || !strings.HasPrefix(name, "_c_") {
		return 0, false
	}
	number := name[i+len("-lock-"):]
	n, err := strconv.ParseInt(number, 10, 32)
	return int32(n), err == nil && len(number) >= digits
}

// earlier reports whether a comes before b. The numbers wrap from the highest int32 to the lowest.
func earlier(a, b int32) bool { return a-b < 0 }

// errForeign says that a node has the name of a lock's node and belongs to no session.
var errForeign = errors.New("has the name of a lock's node and belongs to no session, so it blocks the lock for ever: delete it, or reset the stock")

// foreign returns errForeign if a node is not ephemeral. All nodes of locks are ephemeral.
func foreign(path string, stat *zk.Stat) error {
	const container, ttl = math.MinInt64, -1 // values of EphemeralOwner; for ttl, its first byte
	if owner := stat.EphemeralOwner; owner != 0 && owner != container && owner>>56 != ttl {
		return nil
	}
	return fmt.Errorf("%s %w", path, errForeign)
}
