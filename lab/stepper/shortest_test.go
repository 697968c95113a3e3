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

// TestAhead counts the orders that are left by walking each of them. Each client of none takes four
// steps, so there are 8! / (4! · 4!) orders. Those that lose nothing are the ten in which a client has
// written before the other one reads.
func TestAhead(t *testing.T) {
	t.Parallel()
	all := recordings(t)
	if o, found := all["none"].Ahead(nil); !found || o != (Orders{All: 70, Lose: 60}) {
		t.Errorf("none: %+v, %v", o, found)
	}
	for _, id := range []string{"none", "mutex", "redis", "zk"} {
		g := all[id]
		var walk func(moves []Client, at int) Orders
		walk = func(moves []Client, at int) (sum Orders) {
			n := g.Nodes[at]
			if n.End != nil {
				sum.All = 1
				if n.End.Lost > 0 {
					sum.Lose = 1
				}
			}
			for client, move := range n.Moves {
				if move != nil {
					o := walk(append(moves[:len(moves):len(moves)], Client(client)), move.To)
					sum.All, sum.Lose = sum.All+o.All, sum.Lose+o.Lose
				}
			}
			if o, found := g.Ahead(moves); !found || o != sum {
				t.Fatalf("%s, after %v: %+v, %v; want %+v", id, moves, o, found, sum)
			}
			return sum
		}
		walk(nil, 0)
	}
	if _, found := all["none"].Ahead([]Client{A, A, A, A, A}); found {
		t.Error("a move that is not recorded has orders after it")
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
