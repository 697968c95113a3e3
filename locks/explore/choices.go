package explore

import (
	"cmp"
	"context"
	"slices"
)

// Tree is a tree of choices. It counts the schedules that begin with the same moves. A search counts
// no schedule that it left out because another one has the same effect.
type Tree struct {
	Step      // the last of these moves; the root has none
	Schedules int
	Oversold  int    // schedules that lose an update
	Stalled   int    // schedules in which a client waits in vain for the lock
	Outcome   string // of the schedule that ends here; empty if the schedules go on
	// Children are in the order of the moves. Where schedules go on without children, the limit of
	// the tree has cut them off.
	Children []*Tree

	choice int
}

// SearchTree is Search. It also returns the choices of all schedules, down to the largest depth with
// at most limit moves in total. So the tree depends on the schedules only, and not on the order in
// which the workers find them.
func SearchTree(ctx context.Context, t Scope, limit int, progress func(Result)) (Result, *Tree, error) {
	s := newSearch(t, progress)
	s.tree = &prefixes{root: &Tree{}, limit: limit}
	r, err := s.run(ctx)
	return r, s.tree.root, err
}

// prefixes builds a tree.
type prefixes struct {
	root   *Tree
	limit  int
	levels []int // number of moves at each depth
	moves  int   // sum of levels
	pruned bool  // the tree has lost moves, so it grows no deeper than levels
}

// add counts a schedule at each of its moves. Without a tree, it does nothing.
func (p *prefixes) add(path []*node, o Ending) {
	if p == nil {
		return
	}
	n := p.root
	n.count(o)
	kept := path
	if p.pruned {
		kept = path[:min(len(path), len(p.levels))]
	}
	for depth, state := range kept {
		child, isNew := n.child(state)
		if isNew {
			p.grow(depth)
		}
		n = child
		n.count(o)
	}
	if len(kept) == len(path) {
		n.Outcome = o.String()
	}
	for p.moves > p.limit {
		p.prune()
	}
}

func (p *prefixes) grow(depth int) {
	if depth == len(p.levels) {
		p.levels = append(p.levels, 0)
	}
	p.levels[depth]++
	p.moves++
}

// prune removes the deepest level. The number of moves on the levels above never shrinks, so no
// removed level would fit again.
func (p *prefixes) prune() {
	last := len(p.levels) - 1
	p.moves -= p.levels[last]
	p.levels, p.pruned = p.levels[:last], true
	p.root.cut(last)
}

// cut removes all moves below a depth.
func (t *Tree) cut(depth int) {
	if depth == 0 {
		t.Children = nil
		return
	}
	for _, c := range t.Children {
		c.cut(depth - 1)
	}
}

func (t *Tree) count(o Ending) {
	t.Schedules++
	if o.Oversold() {
		t.Oversold++
	}
	if slices.Contains(o.Ends, Stalled) {
		t.Stalled++
	}
}

// child returns the child of the chosen move, and adds it if it is new.
func (t *Tree) child(state *node) (child *Tree, isNew bool) {
	i, found := slices.BinarySearchFunc(t.Children, state.chosen, func(c *Tree, choice int) int { return cmp.Compare(c.choice, choice) })
	if !found {
		t.Children = slices.Insert(t.Children, i, &Tree{Step: state.moves[state.chosen].step(), choice: state.chosen})
	}
	return t.Children[i], !found
}
