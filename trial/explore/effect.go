package explore

import (
	"slices"
	"strings"
)

// effect is what a move has changed, and what it depends on. It is known once the move was performed.
type effect struct {
	all     bool // the clock went on
	sender  int  // the client whose message was delivered, or -1
	clients [maxClients]bool
	goesOn  bool // the sender has sent a message, or has passed a step
	data    []access
	answer  string // that the sender gets from Redis
	holds   []hold
}

// hold is the moment when a client begins or ends to hold the lock. It must not count as an access: which
// of several answers completes a majority depends on their order, but what follows does not.
type hold struct {
	client int
	begins bool
}

// access is one to the data of a server, or to what is left of the bounds.
type access struct {
	to     string
	writes bool
	keys   []string // only these; nil for all
}

// conflicts reports whether the order of two accesses can have an effect.
func (a access) conflicts(other access) bool {
	if a.to != other.to || !a.writes && !other.writes {
		return false
	}
	if a.keys == nil || other.keys == nil {
		return true
	}
	return slices.ContainsFunc(a.keys, func(key string) bool { return slices.Contains(other.keys, key) })
}

const maxClients = 5

// independent reports whether two moves that were performed in the same state lead to the same state
// in both orders. A notification belongs to the effect of the move that causes it: it wakes a client.
func (e effect) independent(other effect) bool {
	if e.all || other.all {
		return false
	}
	for i := range e.clients {
		if e.touches(i) && other.touches(i) && !e.parallel(other) {
			return false
		}
	}
	for _, a := range e.data {
		for _, b := range other.data {
			if a.conflicts(b) {
				return false
			}
		}
	}
	return true
}

func (e effect) touches(client int) bool { return e.clients[client] || e.sender == client }

// parallel reports whether one client sent both messages at the same time, and the order of their answers
// has no effect. Of messages to several Redis servers, it counts the answers. Of renewals of several locks
// on one server, each changes only its own lock. TestReduction checks it.
func (e effect) parallel(other effect) bool {
	if e.sender < 0 || e.sender != other.sender || e.clients[e.sender] || other.clients[e.sender] || !e.onlyRedis() || !other.onlyRedis() {
		return false
	}
	return e.data[0].to != other.data[0].to || !e.goesOn && !other.goesOn
}

// onlyRedis reports whether all accesses are to one Redis.
func (e effect) onlyRedis() bool {
	other := func(a access) bool { return a.to != e.data[0].to }
	return len(e.data) > 0 && strings.HasPrefix(e.data[0].to, "redis-") && !slices.ContainsFunc(e.data, other)
}
