package zklock

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"oversell/locks"
)

// Primitives returns Curator's recipes except its locks (tutorial 4.6.3, 4.6.5 to 4.6.7). Call it
// once for each session, because the result counts the re-entries of this process. Each namespace has its own folder.
func Primitives(s *Session, namespace string) locks.Primitives {
	w, root := &watches{}, strings.TrimSuffix(primitives+"-"+namespace, "-")
	of := func(folder string) recipe { return recipe{s, root + "/" + folder + "/", w} }
	return locks.Primitives{
		Backend:       "zk",
		ReadWrite:     newReadWrite(of("read-write")),
		Semaphore:     newSemaphore(of("semaphore"), of("semaphore-line")),
		Barrier:       &barrier{of("barrier")},
		DoubleBarrier: &doubleBarrier{of("double-barrier")},
		Counter:       newCounter(of("counter"), of("counter-mutex")),
		Clear: func(ctx context.Context) error {
			return named(ctx, locks.Request{Key: root}, s.clear(ctx, root))
		},
	}
}

// recipe is the base of all primitives. It has a folder with one node for each key.
type recipe struct {
	session *Session
	folder  string
	watches *watches
}

// path returns the path of the key's node. It escapes slashes, which a name must not have.
func (p *recipe) path(key string) string { return p.folder + url.PathEscape(key) }

// inQueue calls try with a new node until try returns a value or an error. On error, no node stays.
func inQueue[T comparable](ctx context.Context, p *recipe, r locks.Request, began time.Time, kind string, try func(context.Context, *node) (T, error)) (value T, err error) {
	calls, cancel := p.session.bound(ctx, r, began)
	defer cancel()
	n, err := p.newNode(calls, p.path(r.Key), kind)
	if err != nil {
		return value, err
	}
	var none T
	for value == none && err == nil {
		if err = n.cut(); err == nil {
			value, err = try(calls, n)
		}
	}
	if err != nil {
		n.abandon(ctx)
	}
	return value, err
}

func (p *recipe) newNode(ctx context.Context, dir, kind string) (*node, error) {
	for {
		n, err := newNode(ctx, p.session, dir, kind)
		if !isNoNode(err) {
			return n, err
		}
		if err = p.room(ctx); err == nil {
			err = p.session.mkdir(ctx, dir)
		}
		if err != nil {
			return nil, err
		}
		// Try again in a loop, because the server may remove an empty folder at any moment.
	}
}

// room returns locks.ErrFull if the folder is full. Concurrent requests may exceed the bound.
func (p *recipe) room(ctx context.Context) error {
	folder := p.folder[:len(p.folder)-1]
	stat, err := p.session.stat(ctx, folder)
	if isNoNode(err) {
		return nil
	}
	if err == nil && stat.NumChildren >= locks.MaxNames {
		return fmt.Errorf("%w: %s has %d names; use one of them, or reset the stock, which deletes them all", locks.ErrFull, folder, stat.NumChildren)
	}
	return err
}

// write waits for call even if ctx ends. It returns errUnknown if the outcome is not known.
func write[T any](ctx context.Context, s *Session, r locks.Request, call func() (T, error)) (value T, err error) {
	if ctx.Err() != nil {
		return value, locks.NotAcquired(ctx, r.Key, r.Wait)
	}
	clean, cancel := locks.CleanUp(ctx)
	defer cancel()
	value, err = do(clean, s, call)
	if known(err) {
		return value, err
	}
	return value, fmt.Errorf("%w: %s: %w", errUnknown, r.Key, err)
}

// watches keeps one watch for each node, which all waiters of the node share. The driver can't
// remove a watch. Without sharing, the watches of waiters that gave up would accumulate.
type watches struct{ pending sync.Map } // node -> <-chan zk.Event

// of returns the watch of the node if the watch has not fired yet, and otherwise nil.
func (w *watches) of(node string) <-chan zk.Event {
	pending, _ := w.pending.Load(node)
	if changed, _ := pending.(<-chan zk.Event); changed != nil && !fired(changed) {
		return changed
	}
	return nil
}

func (w *watches) keep(node string, changed <-chan zk.Event) {
	for name, old := range w.pending.Range {
		if changed, _ := old.(<-chan zk.Event); fired(changed) {
			w.pending.CompareAndDelete(name, old)
		}
	}
	w.pending.Store(node, changed)
}

// fired reports whether the watch has fired. The driver then closes the channel for all waiters.
func fired(changed <-chan zk.Event) bool {
	select {
	case <-changed:
		return true
	default:
		return false
	}
}

type snapshot struct {
	names   []string // names of the node's children
	data    []byte
	stat    *zk.Stat
	changed <-chan zk.Event
}

func (p *recipe) children(ctx context.Context, node string) (snapshot, error) {
	return do(ctx, p.session, func() (now snapshot, err error) {
		// An earlier watch of this node that has not fired also reports changes after this read.
		if now.changed = p.watches.of(node + "/"); now.changed != nil {
			now.names, now.stat, err = p.session.Children(node)
		} else if now.names, now.stat, now.changed, err = p.session.ChildrenW(node); err == nil {
			p.watches.keep(node+"/", now.changed)
		}
		return now, err
	})
}

// data reads the node and watches it. A node that does not exist is not watched.
func (p *recipe) data(ctx context.Context, node string) (snapshot, error) {
	return do(ctx, p.session, func() (now snapshot, err error) {
		if now.changed = p.watches.of(node); now.changed != nil {
			now.data, now.stat, err = p.session.Get(node)
		} else if now.data, now.stat, now.changed, err = p.session.GetW(node); err == nil {
			p.watches.keep(node, now.changed)
		}
		return now, err
	})
}
