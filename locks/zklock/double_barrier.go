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

// doubleBarrier is Curator's DistributedDoubleBarrier (tutorial 4.6.6): members
// are ephemeral nodes, and a node "ready" says that enough of them are there.
// Unlike Curator's, nobody is counted who gave up, and a second round may begin
// while the last of the first are still on their way out.
//
// The price of its simplicity: everybody watches the children, so n members
// cause about n*n/2 wake-ups to enter, and as many to leave.
type doubleBarrier struct{ recipe }

const ready = "ready-"

// Enter waits until so many members are there. That is a threshold, no limit:
// who comes later enters at once.
func (b *doubleBarrier) Enter(ctx context.Context, r locks.Request, members int) error {
	began := time.Now()
	_, err := again(ctx, r, began, func() (bool, error) { return b.enter(ctx, r, began, members) })
	return err
}

func (b *doubleBarrier) enter(ctx context.Context, r locks.Request, began time.Time, members int) (entered bool, err error) {
	calls, cancel := b.patience(ctx, r, began)
	defer cancel()
	at, err := b.place(calls, b.path(r.Key), "member-"+url.QueryEscape(r.Owner)+"=")
	if err != nil {
		return false, err
	}
	for context.Cause(at.alive) == nil {
		entered, err = b.meet(calls, r, began, at, members)
		if entered {
			return true, nil
		}
		if err != nil {
			break
		}
	}
	if cut := context.Cause(at.alive); cut != nil {
		err = fmt.Errorf("%w: %w", errNodeGone, cut)
	} else if ctx.Err() == nil && b.counted(ctx, at) {
		return true, nil // at the last moment: the others have gone in with us
	}
	b.quit(ctx, at)
	return false, err
}

// meet looks once, and waits for a change.
func (b *doubleBarrier) meet(ctx context.Context, r locks.Request, began time.Time, at spot, members int) (entered bool, err error) {
	now, err := b.children(ctx, at.dir)
	if err != nil {
		return false, err
	}
	round := roundOf(now.names)
	owners := map[string]bool{}
	for _, m := range round.members {
		owners[m.owner] = true
	}
	switch {
	case !slices.ContainsFunc(round.members, func(m member) bool { return m.name == at.name }):
		return false, errNodeGone
	case len(round.members) > locks.MaxNames:
		return false, fmt.Errorf("%w: %s has %d members", locks.ErrFull, r.Key, len(round.members)-1)
	case round.on:
		return true, nil
	case len(owners) >= members:
		return b.open(ctx, at.dir, round)
	}
	b.sweep(ctx, at.dir, round)
	return false, pause(ctx, at.alive, r, began, now.changed)
}

// open makes "ready" and marks every member, in ONE transaction: one that gives
// up deletes its node in its first version only. So either all of them are
// counted, or one has left before and we look again.
func (b *doubleBarrier) open(ctx context.Context, dir string, now round) (bool, error) {
	ops := []any{&zk.CreateRequest{Path: dir + "/" + ready, Flags: zk.FlagSequence, Acl: zk.WorldACL(zk.PermAll)}}
	for _, m := range now.members {
		ops = append(ops, &zk.SetDataRequest{Path: dir + "/" + m.name, Data: []byte("in"), Version: 0})
	}
	_, err := do(ctx, func() ([]zk.MultiResponse, error) { return b.session.Multi(ops...) })
	if errors.Is(err, zk.ErrNoNode) || errors.Is(err, zk.ErrBadVersion) {
		return false, nil // somebody left, or opened it before us
	}
	return err == nil, err
}

// counted takes our node back, unless it is marked: then we are in. Our node
// goes with our caller, though: nobody would Leave for it.
func (b *doubleBarrier) counted(ctx context.Context, at spot) bool {
	clean, cancel := locks.CleanUp(ctx)
	defer cancel()
	_, err := do(clean, func() (bool, error) { return true, b.session.Delete(at.dir+"/"+at.name, 0) })
	return errors.Is(err, zk.ErrBadVersion)
}

// Leave deletes our node, and waits until those are gone who were there with
// us. Who gives up waiting has left all the same.
func (b *doubleBarrier) Leave(ctx context.Context, r locks.Request) error {
	began := time.Now()
	err := b.exit(ctx, r, began)
	if errors.Is(err, zk.ErrNoNode) {
		return nil // nobody is there
	}
	return named(ctx, r, err)
}

func (b *doubleBarrier) exit(ctx context.Context, r locks.Request, began time.Time) error {
	dir := b.path(r.Key)
	others, err := b.depart(ctx, dir, url.QueryEscape(r.Owner))
	if err != nil {
		return err
	}
	calls, cancel := b.patience(ctx, r, began)
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
		if err := pause(ctx, alive, r, began, now.changed); err != nil {
			return err
		}
	}
}

// depart deletes our node, also for a caller that is gone, and says who else is
// in: by name, for one that is out may enter the next round before we look again.
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
			_ = b.leave(ctx, dir, m.guid, m.name)
		} else if now.on {
			others = append(others, m.name)
		}
	}
	return others, nil
}

// sweep deletes what is left of a round that is over. Nothing depends on it.
func (b *doubleBarrier) sweep(ctx context.Context, dir string, now round) {
	for _, name := range now.over {
		_ = b.session.remove(ctx, dir+"/"+name)
	}
}

// round is who is there. It is on while a member is left of those who were
// there when it became ready, as their sequence numbers tell.
type round struct {
	members []member
	on      bool
	over    []string // a "ready" of which nobody is left
}

type member struct {
	name, guid, owner string
	seq               int32
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

// memberOf reads _c_<GUID>-member-<owner>=<sequence>.
func memberOf(name string) (member, bool) {
	text, ok := strings.CutPrefix(name, "_c_")
	guid, text, isMember := strings.Cut(text, "-member-")
	owner, tail, equals := strings.Cut(text, "=")
	seq, err := strconv.ParseInt(tail, 10, 32)
	return member{name, guid, owner, int32(seq)}, ok && isMember && equals && err == nil
}
