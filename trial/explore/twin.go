package explore

import (
	"hash/maphash"
	"slices"
	"strings"
)

// A client that sends the same message to several Redis at the same time, as redlock does, treats these
// servers alike. If a schedule is still the same after two of them are exchanged, this also holds for all
// schedules that go on from there. So the search lets only one of the two be the next one to receive such
// a message. TestReduction compares with the search of all orders.

// twins returns, for each move, the index of the first one that differs at most in the server, if the two
// servers can be exchanged. Otherwise it returns -1.
func twins(path []*node, moves []move) []int {
	all := make([]int, len(moves))
	for i, m := range moves {
		all[i] = slices.IndexFunc(moves[:i], func(other move) bool {
			return other.server != m.server && other.identity == m.identity && alike(path, m.server, other.server)
		})
		if all[i] >= 0 {
			all[all[i]] = all[i]
		}
	}
	return all
}

// twinsOf returns the indexes of a move and its twins, if it has any.
func (n *node) twinsOf(i int) (all []int) {
	for j, first := range n.twins {
		if first >= 0 && first == n.twins[i] {
			all = append(all, j)
		}
	}
	return all
}

// alike reports whether the steps of a path depend on each other in the same way after two servers are
// exchanged.
func alike(path []*node, one, other string) bool {
	type step struct {
		identity
		server string
		before uint64 // sum of the hashes of the steps that must come before
	}
	var sum, exchanged uint64
	seed, hashes := maphash.MakeSeed(), make([][2]uint64, len(path))
	for i, n := range path {
		m := n.moves[n.chosen]
		server := m.server
		switch server {
		case one:
			server = other
		case other:
			server = one
		}
		var before [2]uint64
		for k, is := range n.before {
			if is {
				before[0] += hashes[k][0]
				before[1] += hashes[k][1]
			}
		}
		hashes[i] = [2]uint64{
			maphash.Comparable(seed, step{m.identity, m.server, before[0]}),
			maphash.Comparable(seed, step{m.identity, server, before[1]}),
		}
		sum += hashes[i][0]
		exchanged += hashes[i][1]
	}
	return sum == exchanged
}

// asTwin returns the effect that a move would have, from that of its twin.
func (m move) asTwin(of move) move {
	m.effect = of.effect
	m.effect.data = slices.Clone(of.effect.data)
	for i, a := range m.effect.data {
		m.effect.data[i].to = strings.Replace(a.to, of.server, m.server, 1)
	}
	return m
}
