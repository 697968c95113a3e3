package zklock

import (
	"slices"
	"sync"
)

// rows is what one replica knows of the rows of nodes that its waiters stand in.
// Ahead of a node a row only ever shrinks: who comes later stands behind. So one
// list serves many turns, and of a replica's waiters only the first need look.
type rows struct {
	mu      sync.Mutex
	byDir   map[string]*row
	foreign map[string]bool // paths of nodes that are named like a lock's, and are none
}

type row struct {
	mine    []*own   // who of this replica stands in it, in order
	leaving []string // this replica's nodes that are done with, and not yet seen to be gone
	seen    []string // the last list, in order, without those who left or were seen to go
}

// own is a waiter's or a holder's node in a row.
type own struct {
	dir, node string
	left      chan struct{} // closed when it is done with, or given up
}

// enter takes a node's place among those of this replica.
func (r *rows) enter(dir, node string) *own {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.byDir == nil {
		r.byDir = map[string]*row{}
	}
	if r.byDir[dir] == nil {
		r.byDir[dir] = &row{}
	}
	s, line := &own{dir, node, make(chan struct{})}, r.byDir[dir]
	// Answers may come in another order than the nodes were made.
	i, _ := slices.BinarySearchFunc(line.mine, node, func(other *own, node string) int { return byPlace(other.node, node) })
	line.mine = slices.Insert(line.mine, i, s)
	return s
}

// leave is for a node that nobody holds with or waits with any more. It need not be
// gone yet for those of this replica behind it: to all others they stand behind it, and
// that keeps these out. So from one to the next here no server is asked.
func (r *rows) leave(s *own) {
	r.mu.Lock()
	defer r.mu.Unlock()
	close(s.left)
	line := r.byDir[s.dir]
	line.mine = slices.DeleteFunc(line.mine, func(other *own) bool { return other == s })
	line.drop(s.node)
	line.leaving = append(line.leaving, s.node)
}

// deleted is for a node that was left and is gone by now; where that is not sure, only a
// new list can tell.
func (r *rows) deleted(s *own, sure bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	line := r.byDir[s.dir]
	line.leaving = slices.DeleteFunc(line.leaving, func(node string) bool { return node == s.node })
	if !sure {
		line.seen = nil
	}
	if len(line.mine)+len(line.leaving) == 0 {
		delete(r.byDir, s.dir)
	}
}

// before is the one of this replica just before s, nil when s is its first.
func (r *rows) before(s *own) *own {
	r.mu.Lock()
	defer r.mu.Unlock()
	mine := r.byDir[s.dir].mine
	if i := slices.Index(mine, s); i > 0 {
		return mine[i-1]
	}
	return nil
}

// ahead is who is before s, as far as the last list knows; not known when s
// came after it.
func (r *rows) ahead(s *own) (names []string, known bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	seen := r.byDir[s.dir].seen
	i := slices.Index(seen, s.node)
	return slices.Clone(seen[:max(0, i)]), i >= 0
}

// learn keeps a list that was just read.
func (r *rows) learn(s *own, names []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	line := r.byDir[s.dir]
	line.seen = slices.DeleteFunc(names, func(node string) bool {
		return slices.Contains(line.leaving, node) || r.foreign[s.dir+"/"+node]
	})
}

// ignore strikes a node out of the list for good. It is remembered for longer than the row:
// to find it out once more costs one more watch, on a node that never goes.
func (r *rows) ignore(s *own, name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.foreign == nil {
		r.foreign = map[string]bool{}
	}
	r.foreign[s.dir+"/"+name] = true
	r.byDir[s.dir].drop(name)
}

// gone strikes a node out of the list: the server has said that it is no more.
func (r *rows) gone(s *own, name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.byDir[s.dir].drop(name)
}

func (r *row) drop(name string) {
	if i := slices.Index(r.seen, name); i >= 0 {
		r.seen = slices.Delete(r.seen, i, i+1)
	}
}
