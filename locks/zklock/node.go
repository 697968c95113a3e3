package zklock

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"oversell/locks"
)

// A node's name is Curator's: _c_<GUID>-lock-<sequence>. The GUID finds the
// node again when the answer to its creation was lost.
func prefixOf(guid string) string { return "_c_" + guid + "-" }

// create makes the node and returns its name. When the answer is missing it
// looks whether the server has made the node all the same.
func (l *zkLock) create(ctx context.Context, dir, guid string) (string, error) {
	node, err := l.createOnce(ctx, dir, guid, "lock-")
	if errors.Is(err, zk.ErrNoNode) {
		if err := l.session.mkdir(ctx, dir); err != nil {
			return "", fmt.Errorf("make %s: %w", dir, err)
		}
		node, err = l.createOnce(ctx, dir, guid, "lock-")
	}
	if err != nil {
		return "", err
	}
	return node[len(dir)+1:], nil
}

func (l *zkLock) createOnce(ctx context.Context, dir, guid, kind string) (string, error) {
	answered := make(chan struct{})
	node, err := do(ctx, func() (string, error) {
		defer close(answered)
		return l.session.Create(dir+"/"+prefixOf(guid)+kind, nil, zk.FlagEphemeral|zk.FlagSequence, zk.WorldACL(zk.PermAll))
	})
	// Without a server the request was never sent: nothing can be there.
	if err == nil || errors.Is(err, zk.ErrNoNode) || errors.Is(err, zk.ErrNoServer) {
		return node, err
	}
	l.takeBack(ctx, dir, guid, answered)
	return "", err
}

// takeBack deletes a node that nobody waits for any more. It may not be there
// yet: the driver may still send the request, until it has answered.
func (l *zkLock) takeBack(ctx context.Context, dir, guid string, answered <-chan struct{}) {
	clean, cancel := locks.CleanUp(ctx)
	defer cancel()
	select {
	case <-answered:
		if l.session.empty(clean, dir, prefixOf(guid)) == nil {
			return
		}
	case <-clean.Done():
	}
	go func() {
		<-answered
		l.forget(ctx, dir, guid, l.session.SessionID())
	}()
}

// leave deletes our node; ErrNotHeld when it was gone before, or with its
// session. Where the server is away the deletion goes on in the background: who
// waits behind us must hear of it, not wait for it.
func (l *zkLock) leave(ctx context.Context, dir, guid, node string) error {
	session := l.session.SessionID()
	clean, cancel := locks.CleanUp(ctx)
	defer cancel()
	for again := false; ; again = true {
		err := l.session.remove(clean, dir+"/"+node)
		switch {
		case err == nil:
			return nil
		case l.session.SessionID() != session:
			return fmt.Errorf("%w: %s went with its session", locks.ErrNotHeld, node)
		case errors.Is(err, locks.ErrNotHeld) && again:
			return nil // deleted by us before, only the answer was lost
		case errors.Is(err, locks.ErrNotHeld):
			return err
		}
		if clean.Err() != nil || context.Cause(l.session.Alive()) != nil {
			go l.forget(ctx, dir, guid, session)
			return err
		}
	}
}

// forget deletes the node with the GUID, however long the server is away: an
// orphan would block everybody for as long as this replica's session lives.
func (l *zkLock) forget(ctx context.Context, dir, guid string, session int64) {
	ctx = context.WithoutCancel(ctx)
	for {
		attempt, cancel := context.WithTimeout(ctx, l.session.timeout)
		err := l.session.empty(attempt, dir, prefixOf(guid))
		cancel()
		if now := l.session.SessionID(); err == nil || now != 0 && now != session {
			return // deleted, or gone with its session
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-l.session.closed:
			return
		}
	}
}

// before is the node just before ours, and when we asked for it. errNodeGone:
// our session was cut off.
func (l *zkLock) before(ctx context.Context, p *place) (asked time.Time, before string, err error) {
	if err := p.cut(); err != nil {
		return asked, "", err
	}
	asked = time.Now()
	names, err := l.session.list(ctx, p.dir)
	if err != nil {
		return asked, "", err
	}
	line := inOrder(names)
	switch i := slices.Index(line, p.node); i {
	case -1:
		return asked, "", errNodeGone
	case 0:
		return asked, "", nil
	default:
		return asked, line[i-1], nil
	}
}

// inOrder sorts the nodes of locks by their place in the queue and leaves out
// what is not one. It reads each number once: a row may have a thousand nodes, and is
// sorted while everybody in it waits.
func inOrder(names []string) []string {
	type numbered struct {
		name string
		n    int32
	}
	line := make([]numbered, 0, len(names))
	for _, name := range names {
		if n, ok := sequence(name); ok {
			line = append(line, numbered{name, n})
		}
	}
	slices.SortFunc(line, func(a, b numbered) int { return byNumber(a.n, b.n) })
	sorted := make([]string, len(line))
	for i, node := range line {
		sorted[i] = node.name
	}
	return sorted
}

// byPlace compares two nodes of locks.
func byPlace(a, b string) int {
	one, _ := sequence(a)
	other, _ := sequence(b)
	return byNumber(one, other)
}

// byNumber compares two sequences. They are int32 that wrap: what is ahead by less than
// half of the circle comes later.
func byNumber(a, b int32) int { return int(a - b) }

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

// errForeign says that a node is named like a lock's and belongs to no session: nobody
// will release it.
var errForeign = errors.New("is named like a lock's node and belongs to no session, so it never goes: delete it, or reset the stock")

// foreign is errForeign for a node that is not ephemeral, as all nodes of locks are.
func foreign(node string, stat *zk.Stat) error {
	const container, ttl = math.MinInt64, -1 // ZooKeeper writes these there, ttl in the first byte
	if owner := stat.EphemeralOwner; owner != 0 && owner != container && owner>>56 != ttl {
		return nil
	}
	return fmt.Errorf("%s %w", node, errForeign)
}
