package stepper

import (
	"reflect"
	"testing"
)

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

// TestLeft has a client that may try again without end, so only the last node has a number.
func TestLeft(t *testing.T) {
	t.Parallel()
	g := Graph{Nodes: []Node{{Moves: [2]*Move{{To: 1}, {To: 2}}}, {Moves: [2]*Move{{To: 0}, nil}}, {End: &End{Lost: 1}}}}
	if got, want := g.Left(), []*Orders{nil, nil, {All: 1, Lose: 1}}; !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// TestSolution needs a switch after the read of A. A model whose A waits at once needs none: the move of
// B there is no switch.
func TestSolution(t *testing.T) {
	t.Parallel()
	all := recordings(t)
	lost := &End{Lost: 1}
	for name, test := range map[string]struct {
		graph Graph
		want  *Solution
	}{
		"none":  {all["none"], &Solution{[]Client{A, B, B, B, B, A, A, A}, 1}},
		"redis": {all["redis"], nil},
		"empty": {Graph{}, nil},
		"A waits": {Graph{Nodes: []Node{
			{Moves: [2]*Move{{To: 1}, {To: 3}}}, {Moves: [2]*Move{nil, {To: 2}}}, {End: lost}, {Moves: [2]*Move{{To: 2}, nil}},
		}}, &Solution{[]Client{A, B}, 0}},
		"two switches": {Graph{Nodes: []Node{
			{Moves: [2]*Move{{To: 1}, nil}}, {Moves: [2]*Move{{To: 4}, {To: 2}}}, {Moves: [2]*Move{{To: 3}, {To: 4}}}, {End: lost}, {End: &End{}},
		}}, &Solution{[]Client{A, B, A}, 2}},
	} {
		if got := test.graph.Solution(); !reflect.DeepEqual(got, test.want) {
			t.Errorf("%s: %+v, want %+v", name, got, test.want)
		}
	}
}

// fewest returns the smallest number of moves of a path to a lost update, or 0 if there is none.
func fewest(g Graph, at int, log []Entry) (best int) {
	n, moves := g.Nodes[at], 0
	if len(log) > 0 {
		moves = log[len(log)-1].Move
	}
	if n.End != nil && n.End.Lost > 0 {
		return Written(log)
	}
	for _, move := range n.Moves {
		if move == nil {
			continue
		}
		next := log[:len(log):len(log)]
		for _, s := range move.Log {
			s.Move = moves + 1
			next = append(next, s)
		}
		if found := fewest(g, move.To, next); found > 0 && (best == 0 || found < best) {
			best = found
		}
	}
	return best
}
