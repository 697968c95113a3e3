package stepper

import "testing"

// TestShortest compares the numbers with the trees of docs/recorded: it walks every path of a tree.
func TestShortest(t *testing.T) {
	t.Parallel()
	all := recordings(t)
	for id, want := range map[string]int{"none": 6, "redis": 0} {
		moves, found := all[id].Shortest()
		if moves != want || found != (want > 0) {
			t.Errorf("%s: %d, %v; want %d", id, moves, found, want)
		}
		if walked := fewest(all[id], 0, nil); walked != want {
			t.Errorf("%s: the paths of the tree lose an update in %d moves, want %d", id, walked, want)
		}
	}
	if _, found := (Graph{}).Shortest(); found {
		t.Error("a strategy without a recording has a path")
	}
}

// fewest returns the smallest number of moves of a path to a lost update, or 0 if there is none.
func fewest(g Graph, at int, log []Entry) (best int) {
	n := g.Nodes[at]
	if n.End != nil && n.End.Lost > 0 {
		return Moves(log)
	}
	moves := 0
	if len(log) > 0 {
		moves = log[len(log)-1].Move
	}
	for _, move := range n.Moves {
		if move == nil {
			continue
		}
		next := log[:len(log):len(log)]
		for _, s := range move.Log {
			next = append(next, Entry{Client: s.Client, Step: g.Lines[s.Line].Step, Words: g.Lines[s.Line].Words, Row: s.Row, Move: moves + 1})
		}
		if found := fewest(g, move.To, next); found > 0 && (best == 0 || found < best) {
			best = found
		}
	}
	return best
}
