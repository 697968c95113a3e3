package explore

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// branch is a part of all schedules: those that begin with the same choices. Each schedule runs from
// the beginning.
type branch struct {
	full  bool
	pick  func([]move) int // chooses each move of a random schedule; otherwise nil
	path  []*node
	fixed int // the choices before this depth never change
	limit int // ends each schedule at this depth; 0 for none
	depth int
	err   error
}

// node is a state on the path.
type node struct {
	moves  []move
	chosen int
	todo   []bool // which moves to try in this state
	asleep []move // in this state, these moves lead to nothing new
	twins  []int  // see twins
	before []bool // by depth: this earlier step must come before the chosen move
}

// A search is divided into so many branches that a number of workers have about the same to do. The numbers
// must not depend on the machine, or the same search could count, and show, different schedules.
const (
	enoughBranches = 100
	enoughRuns     = 400 // of schedules, in order to divide the search
)

// divide returns the branches of a search: the choices of the first steps.
func divide(ctx context.Context, r *runner, full bool) (all []*branch, err error) {
	runs := 0
	for depth, deeper := 1, true; deeper && len(all) < enoughBranches && runs < enoughRuns; depth++ {
		all, deeper = nil, false
		b := &branch{full: full, limit: depth}
		for more := true; more && ctx.Err() == nil; more = b.next() {
			_, finished, err := b.run(r)
			if err != nil {
				return nil, err
			}
			if runs++; b.last().chosen >= 0 {
				all, deeper = append(all, b.copy()), deeper || !finished
			}
		}
	}
	return all, nil
}

func (b *branch) copy() *branch {
	c := &branch{full: b.full, fixed: len(b.path)}
	for _, n := range b.path {
		n := *n
		n.moves, n.asleep = slices.Clone(n.moves), slices.Clone(n.asleep)
		c.path = append(c.path, &n)
	}
	return c
}

func (b *branch) last() *node { return b.path[len(b.path)-1] }

// run executes the schedule of the path, and goes on to its end.
func (b *branch) run(r *runner) (o Ending, finished bool, err error) {
	b.depth = 0
	o, finished, err = r.run(b.choose)
	if b.last().chosen >= 0 {
		b.order(len(b.path) - 1)
	}
	return o, finished, errors.Join(err, b.err)
}

func (b *branch) choose(moves []move) int {
	if b.depth > 0 {
		b.order(b.depth - 1)
	}
	b.depth++
	if b.depth <= len(b.path) {
		n := b.path[b.depth-1]
		if !slices.EqualFunc(moves, n.moves, move.same) {
			b.err = fmt.Errorf("step %d of a repeated schedule had the choice %s, and now it has %s", b.depth, texts(n.moves), texts(moves))
			return -1
		}
		n.moves = moves // they get the effects
		return n.chosen
	}
	if b.limit > 0 && b.depth > b.limit {
		return -1
	}
	n := &node{moves: moves, chosen: -1, todo: make([]bool, len(moves))}
	if !b.full {
		n.twins = twins(b.path, moves)
		if b.depth > 1 {
			n.asleep = b.path[b.depth-2].sleepAfter()
		}
	}
	if b.pick != nil {
		n.chosen = b.pick(moves)
	} else {
		n.plan(b.full || b.limit > 0)
		n.next()
	}
	b.path = append(b.path, n)
	return n.chosen
}

// next changes the last choice of the path that can be changed. It returns false if there is none.
func (b *branch) next() bool {
	for ; len(b.path) > b.fixed; b.path = b.path[:len(b.path)-1] {
		if b.last().next() {
			return true
		}
	}
	return false
}

func (n *node) move() move { return n.moves[n.chosen] }

// plan marks which moves to try: the first message that is not asleep, and what may depend on more than
// one client. race adds others. Without such a message, or if all is true, plan marks all moves.
func (n *node) plan(all bool) {
	first := -1
	for i, m := range n.moves {
		if first < 0 && m.kind == Deliver && !n.sleeps(i) {
			first = i
		}
	}
	for i, m := range n.moves {
		n.todo[i] = all || first < 0 || i == first || m.kind != Deliver && !m.ofClient()
	}
}

// sleeps reports whether a move is asleep. With one move, all its twins are asleep.
func (n *node) sleeps(i int) bool {
	if slices.ContainsFunc(n.asleep, n.moves[i].same) {
		return true
	}
	for _, j := range n.twinsOf(i) {
		if k := slices.IndexFunc(n.asleep, n.moves[j].same); k >= 0 {
			n.asleep = append(n.asleep, n.moves[i].asTwin(n.asleep[k]))
			return true
		}
	}
	return false
}

// next chooses the next move that is not asleep. The former choice falls asleep. It returns false if
// none is left.
func (n *node) next() bool {
	if n.chosen >= 0 {
		n.asleep = append(n.asleep, n.move())
	}
	n.before = nil
	for i := range n.moves {
		if n.todo[i] && !n.sleeps(i) {
			n.chosen = i
			n.tryFaults()
			return true
		}
	}
	n.chosen = -1
	return false
}

// tryFaults marks the faults of a client whose message is chosen, since they may depend on their order.
func (n *node) tryFaults() {
	for i, m := range n.moves {
		if n.move().kind == Deliver && m.ofClient() && m.client == n.move().client {
			n.todo[i] = true
		}
	}
}

// sleepAfter returns what is asleep after the chosen move: what is asleep here and independent of it.
func (n *node) sleepAfter() (asleep []move) {
	for _, m := range n.asleep {
		if m.effect.independent(n.move().effect) {
			asleep = append(asleep, m)
		}
	}
	return asleep
}
