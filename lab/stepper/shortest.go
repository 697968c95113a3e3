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

// Orders counts the orders of steps that are left.
type Orders struct {
	All  int `json:"all"`
	Lose int `json:"lose"` // those that lose an update
}

// Ahead counts the orders of steps that are left after the moves. found is false if the recording
// does not have the moves, or if a client tries again without end.
func (g Graph) Ahead(moves []Client) (o Orders, found bool) {
	at := 0
	for _, client := range moves {
		if at >= len(g.Nodes) || g.Nodes[at].Moves[client] == nil {
			return o, false
		}
		at = g.Nodes[at].Moves[client].To
	}
	if at >= len(g.Nodes) {
		return o, false
	}
	known, open := map[int]Orders{}, map[int]bool{}
	var count func(at int) (Orders, bool)
	count = func(at int) (sum Orders, finite bool) {
		if o, ok := known[at]; ok {
			return o, true
		}
		if open[at] {
			return sum, false
		}
		open[at] = true
		defer delete(open, at)
		n := g.Nodes[at]
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
			o, finite := count(move.To)
			if !finite {
				return sum, false
			}
			sum.All, sum.Lose = sum.All+o.All, sum.Lose+o.Lose
		}
		known[at] = sum
		return sum, true
	}
	return count(at)
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
