package zklock

import (
	"context"
	"errors"
	"fmt"
	"path"
	"time"

	"github.com/go-zookeeper/zk"

	"oversell/locks"
	"oversell/stock"
)

// single is a lock that is one ephemeral node: who creates it holds the lock,
// and deletes it to release. How the others wait is not its business. It watches
// over its holder's session as zkLock does.
type single struct {
	zkLock
	root string
}

var errTaken = errors.New("the node is there already")

// try creates the node once; errTaken when another one's is there. The name is
// the same for all, so the data says whose it is.
func (l *single) try(ctx context.Context, r locks.Request, began time.Time) (*locks.Lock, error) {
	calls, cancel := l.patience(ctx, r, began)
	defer cancel()
	// Trust begins before the node does. A session that was replaced since then
	// was not heard for so long that no trust is left.
	node, token, asked := l.root+r.Key, locks.Token(r.Owner), time.Now()
	err := l.put(calls, node, token)
	if errors.Is(err, zk.ErrNoNode) {
		if err = l.session.mkdir(calls, path.Dir(node)); err == nil {
			err = l.put(calls, node, token)
		}
	}
	switch {
	case errors.Is(err, zk.ErrNodeExists), l.hungUp(err, r, began): // put has cleaned up
		return nil, errTaken
	case err != nil:
		return nil, l.refusal(ctx, r, err) // put has cleaned up
	case ctx.Err() != nil:
		_ = l.giveBack(ctx, node, token) // nobody wants it any more
		return nil, locks.NotAcquired(ctx, r.Key, r.Wait)
	}
	return l.hold(ctx, l.session.Alive(), locks.Grant{
		Key: r.Key, Owner: r.Owner, Asked: asked, Lease: l.session.timeout,
		Renew:   func(ctx context.Context) error { return l.ours(ctx, node, token) },
		Release: func(ctx context.Context) error { return l.giveBack(ctx, node, token) },
	}), nil
}

// patience is one time-out more than the wait: an answer that is late must not
// pass for a server that is gone.
func (l *single) patience(ctx context.Context, r locks.Request, began time.Time) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, max(0, r.Wait-time.Since(began))+l.session.timeout)
}

// refusal is err as a Locker must say it.
func (l *single) refusal(ctx context.Context, r locks.Request, err error) error {
	switch {
	case errors.Is(err, locks.ErrNotAcquired):
		return err
	case ctx.Err() != nil:
		return locks.NotAcquired(ctx, r.Key, r.Wait)
	}
	return &stock.Unavailable{Backend: "zookeeper", Err: err}
}

// put creates the node. When the answer is missing, the server may have made it
// all the same, or make it later: it is taken back.
func (l *single) put(ctx context.Context, node, token string) error {
	answered := make(chan struct{})
	_, err := do(ctx, func() (string, error) {
		defer close(answered)
		return l.session.Create(node, []byte(token), zk.FlagEphemeral, zk.WorldACL(zk.PermAll))
	})
	for _, known := range []error{nil, zk.ErrNodeExists, zk.ErrNoNode, zk.ErrNoServer} {
		if errors.Is(err, known) {
			return err
		}
	}
	clean, cancel := locks.CleanUp(ctx)
	defer cancel()
	select {
	case <-answered:
		_ = l.giveBack(ctx, node, token)
	case <-clean.Done():
		go func() {
			<-answered
			l.insist(ctx, node, token, l.session.SessionID())
		}()
	}
	return err
}

// ours is ErrNotHeld when the node is gone, or another one's.
func (l *single) ours(ctx context.Context, node, token string) error {
	data, err := do(ctx, func() ([]byte, error) {
		data, _, err := l.session.Get(node)
		return data, err
	})
	if errors.Is(err, zk.ErrNoNode) || err == nil && string(data) != token {
		return fmt.Errorf("%w: %w", locks.ErrNotHeld, errNodeGone)
	}
	return err
}

// drop deletes the node if it is ours. Looking and deleting are two steps, but
// the node can only become another one's when our session ends in between.
func (l *single) drop(ctx context.Context, node, token string) error {
	if err := l.ours(ctx, node, token); err != nil {
		return err
	}
	return l.session.remove(ctx, node)
}

// giveBack is drop for a release, as zkLock.leave is: it asks again where the
// answer was lost, and goes on in the background where the server is away.
func (l *single) giveBack(ctx context.Context, node, token string) error {
	session := l.session.SessionID()
	clean, cancel := locks.CleanUp(ctx)
	defer cancel()
	for again := false; ; again = true {
		err := l.drop(clean, node, token)
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
			go l.insist(ctx, node, token, session)
			return err
		}
	}
}

// insist drops the node, however long the server is away: an orphan would block
// everybody for as long as this replica's session lives.
func (l *single) insist(ctx context.Context, node, token string, session int64) {
	ctx = context.WithoutCancel(ctx)
	for {
		attempt, cancel := context.WithTimeout(ctx, l.session.timeout)
		err := l.drop(attempt, node, token)
		cancel()
		if now := l.session.SessionID(); err == nil || errors.Is(err, locks.ErrNotHeld) || now != 0 && now != session {
			return // deleted, or gone with its session
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-l.session.closed:
			return
		}
	}
}

// Clear deletes the node, whoever holds it.
func (l *single) Clear(ctx context.Context, key string) error {
	if err := l.session.remove(ctx, l.root+key); err != nil && !errors.Is(err, locks.ErrNotHeld) {
		return err
	}
	return nil
}
