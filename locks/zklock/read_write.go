package zklock

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"oversell/api"
	"oversell/locks"
)

// Readers and writers share one queue of nodes, with Curator's names (tutorial 4.6.3,
// InterProcessReadWriteLock). A reader waits for the last writer before it. A writer waits for the
// node just before its own. So no writer waits for readers that arrived later.
const (
	reading = "__READ__"
	writing = "__WRIT__"
)

type readWrite struct {
	readers, writers locks.Locker
	queue            *nodeQueue
}

func newReadWrite(p recipe) *readWrite {
	q := &nodeQueue{recipe: p}
	return &readWrite{locks.Reentrant(side{q, reading}), locks.Reentrant(side{q, writing}), q}
}

// Read also serves the owner of the write lock. An owner that then releases the write lock remains
// a reader (a downgrade), and no other writer is granted the lock in between.
func (l *readWrite) Read(ctx context.Context, r locks.Request) (*locks.Lock, error) {
	return l.readers.Acquire(ctx, r)
}

// Write rejects a reader with ErrUpgrade. Two such readers would wait for each other for ever.
func (l *readWrite) Write(ctx context.Context, r locks.Request) (*locks.Lock, error) {
	if l.queue.holds(r, reading) != nil && l.queue.holds(r, writing) == nil {
		return nil, fmt.Errorf("%s: %w", r.Key, locks.ErrUpgrade)
	}
	return l.writers.Acquire(ctx, r)
}

// nodeQueue is one queue of nodes for each key, with the locks that owners of this process hold.
type nodeQueue struct {
	recipe
	held sync.Map // heldKey -> *held
}

type heldKey struct{ key, owner, kind string }

type held struct {
	*locks.Lock
	node string
}

func (q *nodeQueue) holds(r locks.Request, kind string) *held {
	own, _ := q.held.Load(heldKey{r.Key, r.Owner, kind})
	h, _ := own.(*held)
	return h
}

func (q *nodeQueue) keep(r locks.Request, kind, node string, lock *locks.Lock) {
	key, own := heldKey{r.Key, r.Owner, kind}, &held{lock, node}
	q.held.Store(key, own)
	lock.OnRelease(func() { q.held.CompareAndDelete(key, own) })
}

// side is the lock of the readers or of the writers. A queue with writers only is a mutex.
type side struct {
	*nodeQueue
	kind string
}

func (side) Card() api.Card { return api.Card{} }

func (s side) Acquire(ctx context.Context, r locks.Request) (*locks.Lock, error) {
	return retry(ctx, s.session, r, func(began time.Time) (*locks.Lock, error) { return s.acquire(ctx, r, began) })
}

func (s side) acquire(ctx context.Context, r locks.Request, began time.Time) (*locks.Lock, error) {
	kind, own := s.kind, ""
	// If the owner holds the write lock, its read node queues at the position of its write node.
	if w := s.holds(r, writing); s.kind == reading && w != nil && w.Verify() == nil {
		own = w.node
		kind = own[strings.Index(own, writing)+len(writing):] + "-" + kind
	}
	return inQueue(ctx, &s.recipe, r, began, kind, func(calls context.Context, n *node) (*locks.Lock, error) {
		asked := time.Now()
		names, err := s.session.list(calls, n.dir)
		if err != nil {
			return nil, err
		}
		before, err := waitsFor(names, n.name, own)
		if err != nil {
			return nil, err
		}
		if before == "" {
			lock := n.lock(ctx, r, asked, 0, n.release)
			s.keep(r, s.kind, n.name, lock)
			return lock, nil
		}
		// After this wait, inQueue calls this function again, which lists the queue again. The deleted
		// node may be that of a waiter that gave up, while nodes further ahead still hold the lock.
		_, err = s.session.watch(calls, n.alive, r, began, n.dir+"/"+before)
		return nil, err
	})
}

// waitsFor returns the node that ours must wait for, or "". own is the node of the write lock that
// the same owner holds, or "". If own is not in the queue any more, waitsFor returns errNodeGone.
func waitsFor(names []string, ours, own string) (string, error) {
	before, there := "", own == "" || slices.Contains(names, own)
	for _, s := range sortEntries(names) {
		switch {
		case s.name == ours && there:
			return before, nil
		case s.name != own && (s.writes || strings.Contains(ours, writing)):
			before = s.name
		}
	}
	return "", errNodeGone
}

type entry struct {
	name   string
	at     int32 // position in the queue; for a read by a writer, the sequence of its write
	seq    int32
	writes bool
}

// entryOf reads _c_<GUID>-__READ__<seq>, _c_<GUID>-<at>-__READ__<seq>, and the names of writers.
func entryOf(name string) (entry, bool) {
	kind := reading
	if strings.Contains(name, writing) {
		kind = writing
	}
	head, tail, ok := strings.Cut(name, kind)
	const guid = len("_c_") + 36 + len("-")
	seq, err := strconv.ParseInt(tail, 10, 32)
	if !ok || err != nil || len(head) < guid || !strings.HasPrefix(head, "_c_") {
		return entry{}, false
	}
	at := seq
	if len(head) > guid {
		at, err = strconv.ParseInt(head[guid:len(head)-1], 10, 32)
	}
	return entry{name, int32(at), int32(seq), kind == writing}, err == nil
}

// sortEntries returns the nodes in the order of the queue. Sequence numbers wrap, see func earlier.
func sortEntries(names []string) []entry {
	var sorted []entry
	for _, name := range names {
		if e, ok := entryOf(name); ok {
			sorted = append(sorted, e)
		}
	}
	slices.SortFunc(sorted, func(a, b entry) int { return cmp.Or(int(a.at-b.at), int(a.seq-b.seq)) })
	return sorted
}
