package zklock

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/google/uuid"

	"oversell/locks"
	"oversell/stock"
)

const primitives = "/oversell/primitives"

// Primitives are Curator's recipes besides its locks (tutorial 4.6.3, 4.6.5 to
// 4.6.7). One set for each session: owners re-enter by counts in this process.
func Primitives(s *Session) locks.Primitives {
	w := &watches{pending: map[string]<-chan zk.Event{}}
	of := func(folder string) recipe { return recipe{zkLock{s}, primitives + "/" + folder + "/", w} }
	return locks.Primitives{
		Backend:       "zk",
		ReadWrite:     newReadWrite(of("read-write")),
		Semaphore:     newSemaphore(of("semaphore"), of("semaphore-line")),
		Barrier:       &barrier{of("barrier")},
		DoubleBarrier: &doubleBarrier{of("double-barrier")},
		Counter:       newCounter(of("counter"), of("counter-mutex")),
		Clear: func(ctx context.Context) error {
			return named(ctx, locks.Request{Key: primitives}, s.clear(ctx, primitives))
		},
	}
}

// recipe is what they share: a folder with a node for each key, and how nodes
// are made, watched and taken back.
type recipe struct {
	zkLock
	folder  string
	watches *watches
}

// path is the key's own node: a key may have a slash in it, a node may not.
func (p *recipe) path(key string) string { return p.folder + url.PathEscape(key) }

// spot is an ephemeral node of ours, and the connection that made it.
type spot struct {
	dir, guid, name string
	alive           context.Context
}

// place makes our node, and its folder where that is missing.
func (p *recipe) place(ctx context.Context, dir, kind string) (at spot, err error) {
	at = spot{dir: dir, guid: uuid.NewString()}
	node, err := p.createOnce(ctx, dir, at.guid, kind)
	for errors.Is(err, zk.ErrNoNode) {
		if err := p.room(ctx); err != nil {
			return at, err
		}
		if err := p.mkdirs(ctx, dir); err != nil {
			return at, err
		}
		// Once more may not do: the server removes empty folders at any moment.
		node, err = p.createOnce(ctx, dir, at.guid, kind)
	}
	if err != nil {
		return at, err // createOnce has cleaned up
	}
	// Not before the node is there, for creating it may have waited for a connection.
	at.name, at.alive = node[len(dir)+1:], p.session.Alive()
	return at, nil
}

// room is locks.ErrFull when the folder has no room for one more key. Many who ask at once
// may all find some: the bound is not exact.
func (p *recipe) room(ctx context.Context) error {
	folder := p.folder[:len(p.folder)-1]
	names, err := do(ctx, func() (int32, error) {
		_, stat, err := p.session.Exists(folder)
		if err != nil {
			return 0, err
		}
		return stat.NumChildren, nil
	})
	if err == nil && names >= locks.MaxNames {
		return fmt.Errorf("%w: %s has %d; use one of them, or reset the class, which removes them all", locks.ErrFull, folder, names)
	}
	return err
}

// mkdirs makes a folder that goes by itself: ZooKeeper (from 3.5 on) removes a
// container some time after its last child has gone.
func (p *recipe) mkdirs(ctx context.Context, dir string) error {
	if dir == primitives[:len("/oversell")] {
		return p.session.mkdir(ctx, dir)
	}
	_, err := do(ctx, func() (string, error) {
		return p.session.CreateContainer(dir, nil, zk.FlagContainer, zk.WorldACL(zk.PermAll))
	})
	switch {
	case errors.Is(err, zk.ErrNodeExists):
		return nil
	case !errors.Is(err, zk.ErrNoNode):
		return err
	}
	if err := p.mkdirs(ctx, dir[:lastSlash(dir)]); err != nil {
		return err
	}
	return p.mkdirs(ctx, dir)
}

func lastSlash(path string) int {
	i := len(path) - 1
	for i > 0 && path[i] != '/' {
		i--
	}
	return i
}

// quit takes our node back. Where there is nobody to ask, it goes later: whoever
// gave up need not wait for that.
func (p *recipe) quit(ctx context.Context, at spot) {
	if context.Cause(at.alive) != nil {
		go p.forget(ctx, at.dir, at.guid, p.session.SessionID())
		return
	}
	_ = p.leave(ctx, at.dir, at.guid, at.name)
}

// grant makes a hold of our node. asked is when we last asked for it.
func (p *recipe) grant(ctx context.Context, r locks.Request, at spot, asked time.Time) *locks.Lock {
	return p.hold(ctx, at.alive, locks.Grant{
		Key: r.Key, Owner: r.Owner, Asked: asked, Lease: p.session.timeout,
		Renew:   func(ctx context.Context) error { _, err := p.look(ctx, at.dir+"/"+at.name); return err },
		Release: func(ctx context.Context) error { return p.leave(ctx, at.dir, at.guid, at.name) },
	})
}

// again tries until it is no node of ours that got lost on the way: the session
// expired, or all was cleared, and there is a fresh place to be had.
func again[T any](ctx context.Context, r locks.Request, began time.Time, try func() (T, error)) (T, error) {
	for {
		value, err := try()
		if err != nil && ctx.Err() == nil && (errors.Is(err, errNodeGone) || errors.Is(err, zk.ErrNoNode)) {
			if err = locks.SleepRetry(ctx, r, began, 50*time.Millisecond); err == nil {
				continue
			}
		}
		return value, named(ctx, r, err)
	}
}

// named gives an error the name that callers know it by.
func named(ctx context.Context, r locks.Request, err error) error {
	for _, known := range []error{nil, locks.ErrNotAcquired, locks.ErrMismatch, locks.ErrUpgrade, locks.ErrFull, errUnknown, zk.ErrBadVersion} {
		if errors.Is(err, known) {
			return err
		}
	}
	if ctx.Err() != nil {
		return locks.NotAcquired(ctx, r.Key, r.Wait)
	}
	return &stock.Unavailable{Backend: "zookeeper", Err: err}
}

// errUnknown: a write was sent, and no answer came. Who tries again may do it twice.
var errUnknown = errors.New("no answer from zookeeper: it may be done or not")

// write makes a call that changes something. It does not listen to its caller,
// so that what was begun has an outcome.
func write[T any](ctx context.Context, r locks.Request, call func() (T, error)) (value T, err error) {
	if ctx.Err() != nil {
		return value, locks.NotAcquired(ctx, r.Key, r.Wait)
	}
	clean, cancel := locks.CleanUp(ctx)
	defer cancel()
	value, err = do(clean, call)
	for _, sure := range []error{nil, zk.ErrNoServer, zk.ErrNoNode, zk.ErrNodeExists, zk.ErrBadVersion, zk.ErrNotEmpty} {
		if errors.Is(err, sure) {
			return value, err
		}
	}
	return value, fmt.Errorf("%w: %s: %w", errUnknown, r.Key, err)
}

// patience bounds the calls of a wait by one session time-out more than it: an
// answer that is late must not pass for a server that is gone.
func (p *recipe) patience(ctx context.Context, r locks.Request, began time.Time) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, max(0, r.Wait-time.Since(began))+p.session.timeout)
}

// pause waits for a change. It ends with the connection as well, and with the
// wait: the caller looks again in any case, and a wait that is over then fails.
func pause(ctx, alive context.Context, r locks.Request, began time.Time, changed <-chan zk.Event) error {
	left := r.Wait - time.Since(began)
	if left <= 0 || ctx.Err() != nil {
		return locks.NotAcquired(ctx, r.Key, r.Wait)
	}
	timer := time.NewTimer(left)
	defer timer.Stop()
	select {
	case <-changed:
	case <-alive.Done():
	case <-timer.C:
	case <-ctx.Done():
		return locks.NotAcquired(ctx, r.Key, r.Wait)
	}
	return nil
}

// watches keeps one watch for each node, however many wait for it. The driver
// can't take a watch back: those of waiters that gave up would pile up.
type watches struct {
	mu      sync.Mutex
	pending map[string]<-chan zk.Event
}

// of returns the watch that still waits to fire, or nil.
func (w *watches) of(node string) <-chan zk.Event {
	w.mu.Lock()
	defer w.mu.Unlock()
	changed := w.pending[node]
	if changed != nil && fired(changed) {
		delete(w.pending, node)
		return nil
	}
	return changed
}

// keep also forgets those that have fired.
func (w *watches) keep(node string, changed <-chan zk.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for name, old := range w.pending {
		if fired(old) {
			delete(w.pending, name)
		}
	}
	w.pending[node] = changed
}

// fired: the driver sends one event and closes, so all who wait hear of it.
func fired(changed <-chan zk.Event) bool {
	select {
	case <-changed:
		return true
	default:
		return false
	}
}

// sight is what a node was when we looked, and how we hear of a change since.
type sight struct {
	names   []string // of its children
	data    []byte
	stat    *zk.Stat
	changed <-chan zk.Event
}

// children lists the node's children and watches them.
func (p *recipe) children(ctx context.Context, node string) (sight, error) {
	return do(ctx, func() (now sight, err error) {
		// A watch that was set before this look, and has not fired, covers all after it.
		if now.changed = p.watches.of(node + "/"); now.changed != nil {
			now.names, now.stat, err = p.session.Children(node)
			return now, err
		}
		now.names, now.stat, now.changed, err = p.session.ChildrenW(node)
		if err == nil {
			p.watches.keep(node+"/", now.changed)
		}
		return now, err
	})
}

// data reads the node and watches it. There is no watch on a node that is not there.
func (p *recipe) data(ctx context.Context, node string) (sight, error) {
	return do(ctx, func() (now sight, err error) {
		if now.changed = p.watches.of(node); now.changed != nil {
			now.data, now.stat, err = p.session.Get(node)
			return now, err
		}
		now.data, now.stat, now.changed, err = p.session.GetW(node)
		if err == nil {
			p.watches.keep(node, now.changed)
		}
		return now, err
	})
}

// clear deletes a node and all below it, as often as somebody adds to it.
func (s *Session) clear(ctx context.Context, node string) error {
	for {
		names, err := s.list(ctx, node)
		if errors.Is(err, zk.ErrNoNode) {
			return nil
		}
		if err != nil {
			return err
		}
		for _, name := range names {
			if err := s.clear(ctx, node+"/"+name); err != nil {
				return err
			}
		}
		err = s.remove(ctx, node)
		if !errors.Is(err, zk.ErrNotEmpty) {
			if errors.Is(err, locks.ErrNotHeld) {
				return nil
			}
			return err
		}
	}
}
