package zklock

import (
	"context"
	"errors"
	"time"

	"github.com/go-zookeeper/zk"

	"oversell/locks"
)

// barrier is Curator's DistributedBarrier (tutorial 4.6.6): a node that outlives its process.
type barrier struct{ recipe }

// Set creates the barrier. It returns false if the barrier existed already.
func (b *barrier) Set(ctx context.Context, key string) (bool, error) {
	r := locks.Request{Key: key}
	set, err := b.make(ctx, r, nil)
	return set, named(ctx, r, err)
}

// make creates the key's node, and a missing folder above it. made is false if the node existed.
func (p *recipe) make(ctx context.Context, r locks.Request, data []byte) (made bool, err error) {
	asking, done := p.session.bound(ctx, r, time.Now())
	defer done()
	if err := p.room(asking); err != nil {
		if _, missing := p.session.stat(asking, p.path(r.Key)); errors.Is(err, locks.ErrFull) && missing == nil {
			return false, nil
		}
		return false, err
	}
	_, err = withFolder(asking, p.session, p.folder[:len(p.folder)-1], func() (string, error) {
		return write(ctx, p.session, r, func() (string, error) {
			return p.session.Create(p.path(r.Key), data, zk.FlagPersistent, p.session.acl())
		})
	})
	if errors.Is(err, zk.ErrNodeExists) {
		return false, nil
	}
	return err == nil, err
}

// Await waits until the barrier's node does not exist.
func (b *barrier) Await(ctx context.Context, r locks.Request) error {
	began := time.Now()
	calls, cancel := b.session.bound(ctx, r, began)
	defer cancel()
	for {
		alive := b.session.Alive() // before the read, so that pause notices a later disconnection
		now, err := b.data(calls, b.path(r.Key))
		if isNoNode(err) {
			return nil
		}
		if err != nil {
			return named(ctx, r, err)
		}
		if _, err := pause(ctx, alive, r, began, now.changed); err != nil {
			return err
		}
	}
}

// Remove deletes the barrier. It returns false if the barrier did not exist.
func (b *barrier) Remove(ctx context.Context, key string) (bool, error) {
	r := locks.Request{Key: key}
	_, err := write(ctx, b.session, r, func() (bool, error) { return true, b.session.Delete(b.path(key), -1) })
	if isNoNode(err) {
		return false, nil
	}
	return err == nil, named(ctx, r, err)
}
