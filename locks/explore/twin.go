package explore

import (
	"slices"
	"strings"
)

// A client that sends the same message to several Redis at the same time, as redlock does, treats these
// servers alike. As long as two of them have received nothing, a schedule and the one in which the two
// are exchanged have the same outcome. So the search lets such servers receive their first message in
// one order only. TestReduction compares with the search of all orders.

// twins returns, for each move, the index of an earlier one that differs only in the server, if neither
// of the two servers has received a message. Otherwise it returns -1.
func twins(path []*node, moves []move) []int {
	all := make([]int, len(moves))
	for i, m := range moves {
		all[i] = slices.IndexFunc(moves[:i], func(other move) bool {
			return other.to != m.to && fresh(path, m.to) && fresh(path, other.to) && m.isTwin(other) && sameMessages(moves, m.to, other.to)
		})
	}
	return all
}

// fresh reports whether a Redis has received nothing on this path.
func fresh(path []*node, server string) bool {
	return strings.HasPrefix(server, "redis-") && !slices.ContainsFunc(path, func(n *node) bool { return n.moves[n.chosen].to == server })
}

// isTwin reports whether two moves are the same but for their servers.
func (m move) isTwin(other move) bool {
	if m.id == "" || other.id == "" { // a fail-over
		return m.id == other.id && strings.HasPrefix(m.token, "failover-") && strings.HasPrefix(other.token, "failover-")
	}
	return m.id == strings.Replace(other.id, " "+other.to+" ", " "+m.to+" ", 1)
}

// sameMessages reports whether the same messages are on their way to two servers.
func sameMessages(moves []move, one, other string) bool {
	to := func(server string) []move {
		return slices.DeleteFunc(slices.Clone(moves), func(m move) bool { return m.to != server })
	}
	a, b := to(one), to(other)
	return len(a) == len(b) && !slices.ContainsFunc(a, func(m move) bool { return !slices.ContainsFunc(b, m.isTwin) })
}

// asTwin returns the effect that a move would have, from that of its twin.
func (m move) asTwin(of move) move {
	m.effect = of.effect
	m.effect.data = slices.Clone(of.effect.data)
	for i, a := range m.effect.data {
		m.effect.data[i].to = strings.Replace(a.to, of.to, m.to, 1)
	}
	return m
}
