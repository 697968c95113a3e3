package agent

import (
	"fmt"
	"time"

	"oversell/lab/load"
)

// share is the part of a plan that one agent sends.
type share struct {
	plan  load.Plan
	first int           // number of clients of the agents before
	phase time.Duration // from the start of the run until the start of this agent
}

// divide divides the clients of a plan evenly, and with them the requests and the rate. All agents of
// an open loop end at about the same time, and their requests are due in turn, not in bursts.
func divide(p load.Plan, agents int) ([]share, error) {
	if p.Clients < agents {
		return nil, fmt.Errorf("clients %d: must be at least the number of agents, %d", p.Clients, agents)
	}
	shares := make([]share, agents)
	first := 0
	for i := range shares {
		part := p
		part.Clients = (p.Clients + agents - 1 - i) / agents
		part.Seed = p.Seed + int64(i)
		s := share{first: first}
		if p.Rate > 0 {
			part.Rate = p.Rate * load.Rate(part.Clients) / load.Rate(p.Clients)
			s.phase = time.Duration(float64(i) / float64(p.Rate) * float64(time.Second))
		}
		s.plan = part
		if err := part.Validate(); err != nil {
			return nil, fmt.Errorf("the share of one of %d agents: %w", agents, err)
		}
		shares[i] = s
		first += part.Clients
	}
	return shares, nil
}
