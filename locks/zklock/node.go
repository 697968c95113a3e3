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

// node is an ephemeral sequential node of this replica. The server deletes it when the
// session ends.
type node struct {
	session   *Session
	dir, name string
	alive     context.Context // ends when the connection breaks, see Session.Alive
}

// errNodeGone says that the node was deleted, or will be with its session.
var errNodeGone = errors.New("its node in ZooKeeper is gone, or its connection broke")

// ours is the data of this project's nodes. A holder changes it when it releases, see node.pass.
const ours = "oversell"

// newNode makes a node in dir. It is named as Curator names it: _c_<GUID>-<kind><sequence>.
// zk.ErrNoNode: there is no such folder. On failure, no node stays.
func newNode(ctx context.Context, s *Session, dir, kind string) (*node, error) {
	prefix := "_c_" + uuid.NewString() + "-"
	path, err := s.makeEphemeral(ctx, dir+"/"+prefix+kind, []byte(ours), zk.FlagSequence, func(ctx context.Context) error {
		return s.empty(ctx, dir, prefix)
	})
	if err != nil {
		return nil, err
	}
	// Alive is asked for only now: to make the node may have waited for a connection.
	return &node{s, dir, path[len(dir)+1:], s.Alive()}, nil
}

func (n *node) path() string { return n.dir + "/" + n.name }

// cut returns errNodeGone where the connection broke since the node was made.
func (n *node) cut() error {
	if err := context.Cause(n.alive); err != nil {
		return fmt.Errorf("%w: %w", errNodeGone, err)
	}
	return nil
}

// lock makes a lock of the node, which release gives back. It is trusted for one session time-out from asked, looks at
// its node every third of that, and is lost when the connection breaks.
func (n *node) lock(ctx context.Context, r locks.Request, asked time.Time, fence int64, release func(context.Context) error) *locks.Lock {
	return n.session.watchOver(ctx, n.alive, locks.Grant{
		Key: r.Key, Owner: r.Owner, Asked: asked, Lease: n.session.timeout, Fence: fence,
		Renew:        func(ctx context.Context) error { _, err := n.stat(ctx); return err },
		AdvanceFence: func(ctx context.Context, _ int64) (int64, error) { return n.advanceFence(ctx) },
		Release:      release,
	})
}

// stat returns ErrNotHeld where the node is gone.
func (n *node) stat(ctx context.Context) (*zk.Stat, error) {
	stat, err := n.session.stat(ctx, n.path())
	return stat, lost(err)
}

// lost turns a missing node into ErrNotHeld.
func lost(err error) error {
	if isNoNode(err) {
		return fmt.Errorf("%w: %w", locks.ErrNotHeld, errNodeGone)
	}
	return err
}

func isNoNode(err error) bool { return errors.Is(err, zk.ErrNoNode) }

// fence returns the id of the transaction that made the node: ZooKeeper never uses one twice.
func (n *node) fence(ctx context.Context) (int64, error) {
	stat, err := n.stat(ctx)
	if err != nil {
		return 0, err
	}
	return stat.Czxid, nil
}

// advanceFence returns the id of a new transaction, which is above all before it. The
// transaction checks that the node exists, and writes to the folder: a write to the node
// itself would wake the waiter behind it.
func (n *node) advanceFence(ctx context.Context) (int64, error) {
	return do(ctx, func() (int64, error) {
		answers, err := n.session.Multi(&zk.CheckVersionRequest{Path: n.path(), Version: -1}, &zk.SetDataRequest{Path: n.dir, Version: -1})
		if err != nil {
			return 0, lost(err)
		}
		return answers[1].Stat.Mzxid, nil
	})
}

// release deletes the node. ErrNotHeld: it was gone before, or its session has ended.
func (n *node) release(ctx context.Context) error {
	return n.session.giveBack(ctx, func(ctx context.Context) error { return n.session.remove(ctx, n.path()) })
}

// pass releases the lock: it changes the node and deletes it in one transaction. The event that
// the waiter behind receives is then that of the change, and says that a holder has released
// the lock. A waiter that gives up, and a session that ends, only delete the node.
//
// DANGER: another client that writes to the node, as Curator's Revoker does, looks like a
// release to the waiter behind, while the holder still works. Only a fenced write is safe then.
func (n *node) pass(ctx context.Context) error {
	return n.session.giveBack(ctx, func(ctx context.Context) error {
		_, err := do(ctx, func() ([]zk.MultiResponse, error) {
			return n.session.Multi(&zk.SetDataRequest{Path: n.path(), Version: -1}, &zk.DeleteRequest{Path: n.path(), Version: -1})
		})
		return lost(err)
	})
}

// abandon deletes the node of a request that failed. Where the connection is broken, the
// request does not wait for that.
func (n *node) abandon(ctx context.Context) {
	if n.cut() != nil {
		go func() { _ = n.release(ctx) }()
		return
	}
	_ = n.release(ctx)
}

// watch waits until the node at path is deleted, the connection breaks, or the wait is over:
// the caller looks again in any case, unless it was released by pass. errForeign: the node
// would never be deleted. GetW is used, for the watch that ExistsW sets on a missing node would
// stay.
func (s *Session) watch(ctx, alive context.Context, r locks.Request, began time.Time, path string) (released bool, err error) {
	passes := false // a change of another client's node means something else: Curator's Revoker makes one
	changed, err := do(ctx, func() (<-chan zk.Event, error) {
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

// nearestBefore returns which of the names has the highest sequence number below the own one,
// "" where there is none. found: the own name is among them, too. It sorts nothing, for there
// may be a thousand names, and all of them wait meanwhile.
func nearestBefore(own string, names []string, skip func(name string) bool) (before string, found bool) {
	ours, _ := sequence(own)
	nearest := int32(0)
	for _, name := range names {
		n, ok := sequence(name)
		switch {
		case name == own:
			found = true
		case !ok, !earlier(n, ours), before != "" && earlier(n, nearest), skip(name):
		default:
			before, nearest = name, n
		}
	}
	return before, found
}

// sequence reads the number after "-lock-" in a name that begins with "_c_": ten digits, with
// a minus sign once the counter has wrapped.
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

// earlier compares two sequence numbers. They are int32 that wrap: a number is the earlier
// one where the other is ahead of it by less than half of the circle.
func earlier(a, b int32) bool { return a-b < 0 }

// errForeign says that a node has the name of a lock's node and belongs to no session: it
// would block the lock for ever.
var errForeign = errors.New("has the name of a lock's node and belongs to no session, so it never goes: delete it, or reset the stock")

// foreign returns errForeign for a node that is not ephemeral, as all nodes of locks are.
func foreign(path string, stat *zk.Stat) error {
	const container, ttl = math.MinInt64, -1 // ZooKeeper writes these there, ttl in the first byte
	if owner := stat.EphemeralOwner; owner != 0 && owner != container && owner>>56 != ttl {
		return nil
	}
	return fmt.Errorf("%s %w", path, errForeign)
}
