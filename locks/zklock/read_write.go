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

	"oversell/locks"
)

// Readers and writers stand in one line, named as Curator names them (tutorial
// 4.6.3, InterProcessReadWriteLock): a reader waits for the last writer before
// it, a writer for the one before it. So no writer waits for later readers.
const (
	reading = "__READ__"
	writing = "__WRIT__"
)

type readWrite struct {
	readers, writers locks.Locker
	line             *line
}

func newReadWrite(p recipe) *readWrite {
	l := newLine(p)
	return &readWrite{locks.Reentrant(side{l, reading}), locks.Reentrant(side{l, writing}), l}
}

// Read may be asked by the owner of the write as well. Who then releases the
// write goes on as a reader (a downgrade), and no writer gets in between.
func (l *readWrite) Read(ctx context.Context, r locks.Request) (*locks.Lock, error) {
	return l.readers.Acquire(ctx, r)
}

// Write refuses a reader at once: two that both asked would wait for each other.
func (l *readWrite) Write(ctx context.Context, r locks.Request) (*locks.Lock, error) {
	if l.line.holds(r, reading) != nil && l.line.holds(r, writing) == nil {
		return nil, fmt.Errorf("%s: %w", r.Key, locks.ErrUpgrade)
	}
	return l.writers.Acquire(ctx, r)
}

// line is one line for each key, and what owners of this process hold in it.
type line struct {
	recipe
	mu   sync.Mutex
	held map[grip]*held
}

type grip struct{ key, owner, kind string }

type held struct {
	*locks.Lock
	node string
}

func newLine(p recipe) *line { return &line{recipe: p, held: map[grip]*held{}} }

func (l *line) holds(r locks.Request, kind string) *held {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.held[grip{r.Key, r.Owner, kind}]
}

// keep remembers a hold's node until its release.
func (l *line) keep(r locks.Request, kind, node string, h *locks.Lock) {
	g, mine := grip{r.Key, r.Owner, kind}, &held{h, node}
	l.mu.Lock()
	l.held[g] = mine
	l.mu.Unlock()
	h.OnRelease(func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.held[g] == mine {
			delete(l.held, g)
		}
	})
}

// side is the readers' or the writers' way into the line. The writers' alone is a mutex.
type side struct {
	*line
	kind string
}

func (side) Card() locks.Card { return locks.Card{} }

func (s side) Acquire(ctx context.Context, r locks.Request) (*locks.Lock, error) {
	began := time.Now()
	return again(ctx, r, began, func() (*locks.Lock, error) { return s.queue(ctx, r, began) })
}

// queue makes a node and waits for those before it. On failure, no node stays.
func (s side) queue(ctx context.Context, r locks.Request, began time.Time) (h *locks.Lock, err error) {
	kind, own := s.kind, ""
	// A writer that reads stands where it writes. One that lost its write waits like others.
	if w := s.holds(r, writing); s.kind == reading && w != nil && w.Verify() == nil {
		own = w.node
		kind = own[strings.Index(own, writing)+len(writing):] + "-" + kind
	}
	calls, cancel := s.patience(ctx, r, began)
	defer cancel()
	at, err := s.place(calls, s.path(r.Key), kind)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			s.quit(ctx, at)
		}
	}()
	for context.Cause(at.alive) == nil {
		asked := time.Now()
		names, err := s.session.list(calls, at.dir)
		if err != nil {
			return nil, err
		}
		before, err := waitsFor(names, at.name, own)
		if err != nil {
			return nil, err
		}
		if before == "" {
			h := s.grant(ctx, r, at, asked)
			s.keep(r, s.kind, at.name, h)
			return h, nil
		}
		// Woken or not, look again: who was before us may have given up, and
		// those further ahead are still there.
		if _, err := s.watch(calls, &place{request: r, began: began, alive: at.alive, dir: at.dir}, before); err != nil {
			return nil, err
		}
	}
	return nil, fmt.Errorf("%w: %w", errNodeGone, context.Cause(at.alive))
}

// waitsFor returns the one node that ours waits for, "" when it has its turn.
// own is the write of the same owner, which must still be there.
func waitsFor(names []string, ours, own string) (string, error) {
	before, there := "", own == "" || slices.Contains(names, own)
	for _, s := range standing(names) {
		switch {
		case s.name == ours && there:
			return before, nil
		case s.name != own && (s.writes || strings.Contains(ours, writing)):
			before = s.name
		}
	}
	return "", errNodeGone
}

// stand is a node's place in the line.
type stand struct {
	name   string
	at     int32 // where it stands: for a writer that reads, where it writes
	seq    int32
	writes bool
}

// standOf reads _c_<GUID>-__READ__<seq>, _c_<GUID>-<at>-__READ__<seq> and the same of a writer.
func standOf(name string) (stand, bool) {
	kind := reading
	if strings.Contains(name, writing) {
		kind = writing
	}
	head, tail, ok := strings.Cut(name, kind)
	const guid = len("_c_") + 36 + len("-")
	seq, err := strconv.ParseInt(tail, 10, 32)
	if !ok || err != nil || len(head) < guid || !strings.HasPrefix(head, "_c_") {
		return stand{}, false
	}
	at := seq
	if len(head) > guid {
		at, err = strconv.ParseInt(head[guid:len(head)-1], 10, 32)
	}
	return stand{name, int32(at), int32(seq), kind == writing}, err == nil
}

// standing is the line in order. A sequence wraps: what is ahead by less than
// half of the circle comes later.
func standing(names []string) []stand {
	var line []stand
	for _, name := range names {
		if s, ok := standOf(name); ok {
			line = append(line, s)
		}
	}
	slices.SortFunc(line, func(a, b stand) int { return cmp.Or(int(a.at-b.at), int(a.seq-b.seq)) })
	return line
}
