package stepper

import "oversell/lab/history"

// Recordings returns the graphs of all strategies, by their ids, from compressed JSON.
func Recordings(compressed []byte) (graphs map[string]Graph, err error) {
	err = history.Decompress(compressed, &graphs)
	return graphs, err
}

// Shortest returns the smallest number of moves that loses an update, counted like Moves. found is
// false if no recorded order of the steps loses an update.
func (g Graph) Shortest() (moves int, found bool) {
	if len(g.Nodes) == 0 {
		return 0, false
	}
	type state struct {
		node    int
		written [2]bool
		moves   int
	}
	known := map[int]bool{0: true}
	for queue := []state{{}}; len(queue) > 0; queue = queue[1:] {
		at := queue[0]
		n := g.Nodes[at.node]
		if (at.written == [2]bool{true, true} || n.End != nil) && g.loses(at.node) {
			return at.moves, true
		}
		for _, move := range n.Moves {
			if move == nil || known[move.To] {
				continue
			}
			known[move.To] = true
			next := state{move.To, at.written, at.moves + 1}
			for _, seen := range move.Log {
				line := g.Lines[seen.Line]
				next.written[seen.Client] = next.written[seen.Client] || writes(line.Step, line.Words)
			}
			queue = append(queue, next)
		}
	}
	return 0, false
}

// loses reports whether every order of steps from this node on loses an update.
func (g Graph) loses(from int) bool {
	known := map[int]bool{from: true}
	for queue := []int{from}; len(queue) > 0; queue = queue[1:] {
		n := g.Nodes[queue[0]]
		if n.End != nil && n.End.Lost <= 0 {
			return false
		}
		for _, move := range n.Moves {
			if move != nil && !known[move.To] {
				known[move.To] = true
				queue = append(queue, move.To)
			}
		}
	}
	return true
}
