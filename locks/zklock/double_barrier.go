package zklock

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"oversell/locks"
)

// doubleBarrier is Curator's DistributedDoubleBarrier (tutorial 4.6.6). Each member is an ephemeral
// node. The node "ready" is created when enough members have entered. Unlike in Curator's barrier,
// members that gave up do not count. A new round (one use of the barrier) may begin while the last
// members of the old round still leave. Each member watches the list of members. So n members cause
// about n*n/2 wake-ups to enter, and the same number to leave.
type doubleBarrier struct{ recipe }

const ready = "ready-"

// Enter waits until the given number of members has entered. Later members enter at once.
func (b *doubleBarrier) Enter(ctx context.Context, r locks.Request, members int) error {
	_, err := retry(ctx, b.session, r, func(began time.Time) (bool, error) { return b.enter(ctx, r, began, members) })
	return err
}

func (b *doubleBarrier) enter(ctx context.Context, r locks.Request, began time.Time, members int) (entered bool, err error) {
	kind := "member-" + url.QueryEscape(r.Owner) + "="
	return inQueue(ctx, &b.recipe, r, began, kind, func(calls context.Context, n *node) (bool, error) {
		entered, err := b.meet(calls, r, began, n, members)
		switch {
		case err == nil:
			return entered, nil
		case n.cut() != nil:
			return false, n.cut()
		case ctx.Err() == nil && b.counted(ctx, n):
			return true, nil // another member opened the barrier at the last moment, and counted this one
		}
		return false, err
	})
}

func (b *doubleBarrier) meet(ctx context.Context, r locks.Request, began time.Time, n *node, members int) (entered bool, err error) {
	now, err := b.children(ctx, n.dir)
	if err != nil {
		return false, err
	}
	round := roundOf(now.names)
	owners := map[string]bool{}
	for _, m := range round.members {
		owners[m.owner] = true
	}
	switch {
	case !slices.ContainsFunc(round.members, func(m member) bool { return m.name == n.name }):
		return false, errNodeGone
	case len(round.members) > locks.MaxNames:
		return false, fmt.Errorf("%w: %s has %d members", locks.ErrFull, r.Key, len(round.members)-1)
	case round.on:
		return true, nil
	case len(owners) >= members:
		return b.open(ctx, n.dir, round)
	}
	b.sweep(ctx, n.dir, round)
	_, err = pause(ctx, n.alive, r, began, now.changed)
	return false, err
}

// open creates the node "ready" and marks every member's node, in ONE transaction. A member that
// gives up deletes only an unmarked node. So open counts all members, or it returns false.
func (b *doubleBarrier) open(ctx context.Context, dir string, now round) (bool, error) {
	ops := []any{&zk.CreateRequest{Path: dir + "/" + ready, Flags: zk.FlagSequence, Acl: b.session.acl()}}
	for _, m := range now.members {
		ops = append(ops, &zk.SetDataRequest{Path: dir + "/" + m.name, Data: []byte("in"), Version: 0})
	}
	_, err := do(ctx, b.session, func() ([]zk.MultiResponse, error) { return b.session.Multi(ops...) })
	if isNoNode(err) || errors.Is(err, zk.ErrBadVersion) {
		return false, nil // a member left, or another member opened the barrier
	}
	return err == nil, err
}

// counted deletes the member's node, or returns true if open has marked it: the member has entered.
func (b *doubleBarrier) counted(ctx context.Context, n *node) bool {
	clean, cancel := locks.CleanUp(ctx)
	defer cancel()
	_, err := do(clean, b.session, func() (bool, error) { return true, b.session.Delete(n.path(), 0) })
	return errors.Is(err, zk.ErrBadVersion)
}

// Leave deletes the member's node, and waits until all other members of the round have left, too.
// The member has left even if this wait ends early.
func (b *doubleBarrier) Leave(ctx context.Context, r locks.Request) error {
	began := time.Now()
	err := b.exit(ctx, r, began)
	if isNoNode(err) {
		return nil // the barrier has no members
	}
	return named(ctx, r, err)
}

func (b *doubleBarrier) exit(ctx context.Context, r locks.Request, began time.Time) error {
	dir := b.path(r.Key)
	others, err := b.depart(ctx, dir, url.QueryEscape(r.Owner))
	if err != nil {
		return err
	}
	calls, cancel := b.session.bound(ctx, r, began)
	defer cancel()
	for {
		alive := b.session.Alive()
		now, err := b.children(calls, dir)
		if err != nil {
			return err
		}
		others = slices.DeleteFunc(others, func(name string) bool { return !slices.Contains(now.names, name) })
		if len(others) == 0 {
			b.sweep(calls, dir, roundOf(now.names))
			return nil
		}
		if _, err := pause(ctx, alive, r, began, now.changed); err != nil {
			return err
		}
	}
}

// depart deletes the owner's node, even if the request is cancelled. It returns the other nodes'
// names, not owners: an owner may enter the next round at once, under the same name.
func (b *doubleBarrier) depart(ctx context.Context, dir, owner string) (others []string, err error) {
	clean, cancel := locks.CleanUp(ctx)
	defer cancel()
	names, err := b.session.list(clean, dir)
	if err != nil {
		return nil, err
	}
	now := roundOf(names)
	for _, m := range now.members {
		if m.owner == owner {
			_ = (&node{session: b.session, dir: dir, name: m.name}).release(ctx)
		} else if now.on {
			others = append(others, m.name)
		}
	}
	return others, nil
}

// sweep deletes the "ready" nodes of rounds that are over. A node that stays does no harm.
func (b *doubleBarrier) sweep(ctx context.Context, dir string, now round) {
	for _, name := range now.over {
		_ = b.session.remove(ctx, dir+"/"+name)
	}
}

// A round is open while a member has a lower sequence number than the node "ready" of the round.
type round struct {
	members []member
	on      bool
	over    []string // "ready" nodes whose members have all left
}

type member struct {
	name, owner string
	seq         int32
}

func roundOf(names []string) (now round) {
	for _, name := range names {
		if m, ok := memberOf(name); ok {
			now.members = append(now.members, m)
		}
	}
	for _, name := range names {
		tail, ok := strings.CutPrefix(name, ready)
		at, err := strconv.ParseInt(tail, 10, 32)
		if !ok || err != nil {
			continue
		}
		if slices.ContainsFunc(now.members, func(m member) bool { return m.seq-int32(at) < 0 }) { //nolint:gosec // parsed as 32 bits
			now.on = true
		} else {
			now.over = append(now.over, name)
		}
	}
	return now
}

// memberOf parses the name of a member's node: _c_<GUID>-member-<owner>=<sequence>.
func memberOf(name string) (member, bool) {
	text, ok := strings.CutPrefix(name, "_c_")
	_, text, isMember := strings.Cut(text, "-member-")
	owner, tail, equals := strings.Cut(text, "=")
	seq, err := strconv.ParseInt(tail, 10, 32)
	return member{name, owner, int32(seq)}, ok && isMember && equals && err == nil
}
