// Package stepper leads two clients through one strategy, step by step. Both buy one piece of the
// same product, each on a replica of its own, and both stop at every step of the strategy. The user
// chooses which client continues, and so can cause a lost update by hand. A [Graph] has every order of
// the steps, and [Lab.Solve] plays one that loses an update. The replicas and servers are real, so a
// client may have to wait for the lock.
package stepper

import (
	"errors"
	"time"

	"oversell/lab/player"
	"oversell/lab/rig"
)

// Pieces is the stock at the start of a round.
const Pieces = 10

// Lab is a running lab with the strategy that the clients use.
type Lab struct {
	Strategy string
	// Lease is the lease of each request, a minute at most. 0 means the default lease of the replica.
	// Set Lease only for strategies that let a request choose its lease.
	Lease time.Duration

	bed *player.Testbed
	// rankFences numbers the fences of a round from 1, because etcd's fences rise over all rounds.
	rankFences bool
}

// Open returns a Lab that uses the first two replicas of a lab for the clients A and B.
func Open(on *rig.Rig, strategy string) (*Lab, error) {
	if len(on.Addresses().Replicas) < 2 {
		return nil, errors.New("stepper: two clients need two replicas")
	}
	return &Lab{Strategy: strategy, bed: player.Unrecorded(on)}, nil
}
