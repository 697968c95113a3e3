package stepper

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"oversell/lab/history"
)

// Recordings returns the graphs of all strategies, by their ids, from compressed JSON.
func Recordings(compressed []byte) (graphs map[string]Graph, err error) {
	err = history.Decompress(compressed, &graphs)
	return graphs, err
}

// GraphIn returns the recorded graph of the lab's strategy. If the recordings lack the strategy, it
// records the graph now, which takes about a minute, and calls played after each round.
func (l *Lab) GraphIn(ctx context.Context, compressed []byte, played func()) (Graph, error) {
	graphs, err := Recordings(compressed)
	if err != nil {
		return Graph{}, err
	}
	if g, recorded := graphs[l.Strategy]; recorded {
		return g, nil
	}
	return l.Record(ctx, played)
}

// Solve plays the solution on the replicas. It calls played after each move. No other round may be open.
func (l *Lab) Solve(ctx context.Context, s Solution, played func(*Round) error) (err error) {
	round, err := l.Begin(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, round.Close()) }()
	for _, client := range s.Moves {
		if err := goOn(ctx, round, client); err != nil {
			return err
		}
		if err := played(round); err != nil {
			return err
		}
	}
	if !round.Over() || round.Stock().Lost() <= 0 {
		return fmt.Errorf("the steps of %s differ from the recording, perhaps because this machine is busy; record them again with `make steps strategy=%s`", l.Strategy, l.Strategy)
	}
	return nil
}

// Shortest returns the smallest number of moves until both clients have written and an update is lost,
// whatever follows. found is false if no recorded order of the steps loses an update.
func (g Graph) Shortest() (moves int, found bool) {
	for at, path := range g.reached(0) {
		if (Written(g.Log(path)) > 0 || g.Nodes[at].End != nil) && g.loses(at) {
			return len(path), true
		}
	}
	return 0, false
}

// reached yields the nodes that moves reach from a node, and itself first, in the order of their distance, each with a
// shortest path.
func (g Graph) reached(from int) iter.Seq2[int, []Client] {
	return func(yield func(int, []Client) bool) {
		if from >= len(g.Nodes) {
			return
		}
		paths := map[int][]Client{from: nil}
		for queue := []int{from}; len(queue) > 0; queue = queue[1:] {
			at := queue[0]
			if !yield(at, paths[at]) {
				return
			}
			for client, move := range g.Nodes[at].Moves {
				if move == nil {
					continue
				}
				if _, known := paths[move.To]; !known {
					paths[move.To] = append(slices.Clone(paths[at]), Client(client))
					queue = append(queue, move.To)
				}
			}
		}
	}
}

// Orders counts the orders of steps that are left.
type Orders struct {
	All  int
	Lose int // those that lose an update
}

// Ahead counts the orders of steps that are left after the moves. found is false if the recording
// does not have the moves, or if a client tries again without end.
func (g Graph) Ahead(moves []Client) (o Orders, found bool) {
	at, found := g.after(moves)
	if left := g.Left(); found && left[at] != nil {
		return *left[at], true
	}
	return o, false
}

// Decided reports whether the moves lose an update, whatever moves follow.
func (g Graph) Decided(moves []Client) bool {
	at, found := g.after(moves)
	return found && g.loses(at)
}

// after returns the node that the moves reach, if the recording has them.
func (g Graph) after(moves []Client) (at int, found bool) {
	for _, client := range moves {
		if at >= len(g.Nodes) || g.Nodes[at].Moves[client] == nil {
			return 0, false
		}
		at = g.Nodes[at].Moves[client].To
	}
	return at, at < len(g.Nodes)
}

// Left counts the orders of steps that are left at each node. It has nil for a node from which a client
// tries again without end.
func (g Graph) Left() []*Orders {
	left, known := make([]*Orders, len(g.Nodes)), make([]bool, len(g.Nodes))
	var count func(at int) *Orders
	count = func(at int) *Orders {
		if known[at] {
			return left[at]
		}
		known[at] = true // a path that comes back here meanwhile is endless, and finds nil
		n, sum := g.Nodes[at], Orders{}
		if n.End != nil {
			sum.All = 1
			if n.End.Lost > 0 {
				sum.Lose = 1
			}
		}
		for _, move := range n.Moves {
			if move == nil {
				continue
			}
			o := count(move.To)
			if o == nil {
				return nil
			}
			sum.All, sum.Lose = sum.All+o.All, sum.Lose+o.Lose
		}
		left[at] = &sum
		return &sum
	}
	for at := range g.Nodes {
		count(at)
	}
	return left
}

// Solution is an order of moves that loses an update, with the fewest switches between the clients. A
// switch is a move of the other client at a state from which the same client could have moved.
type Solution struct {
	Moves    []Client `json:"moves"`
	Switches int      `json:"switches"`
}

// Solution returns nil if no recorded order of the steps loses an update.
func (g Graph) Solution() *Solution {
	type state struct {
		node  int
		last  Client
		moves []Client
	}
	known := map[[2]int]bool{} // a node, and the client that moved last
	level := []state{{}}       // the states with the same number of switches
	for switches := 0; len(level) > 0 && len(g.Nodes) > 0; switches++ {
		var switched []state
		for len(level) > 0 {
			at := level[0]
			level = level[1:]
			n := g.Nodes[at.node]
			if n.End != nil && n.End.Lost > 0 {
				return &Solution{at.moves, switches}
			}
			place := [2]int{at.node, int(at.last)}
			if known[place] {
				continue
			}
			known[place] = true
			for i, move := range slices.Backward(n.Moves[:]) { // A begins: both clients do the same
				if move == nil {
					continue
				}
				client := Client(i)
				to := state{move.To, client, append(slices.Clip(at.moves), client)}
				if len(at.moves) == 0 || client == at.last || n.Moves[at.last] == nil {
					level = slices.Insert(level, 0, to) // before the others: of two solutions, the one that switches first
				} else {
					switched = append(switched, to)
				}
			}
		}
		level = switched
	}
	return nil
}

// loses reports whether every order of steps from this node on loses an update.
func (g Graph) loses(from int) bool {
	for at := range g.reached(from) {
		if end := g.Nodes[at].End; end != nil && end.Lost <= 0 {
			return false
		}
	}
	return true
}
