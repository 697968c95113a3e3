package agent

import "time"

// sample is one comparison of two clocks. The agent read its clock between Sent and Received.
type sample struct {
	sent, received time.Duration // on the coordinator's clock
	read           time.Duration // on the agent's clock
	wall           time.Duration // the agent's wall clock minus the coordinator's
}

func (s sample) roundTrip() time.Duration { return s.received - s.sent }

// clock converts times of the coordinator to those of an agent.
type clock struct {
	offset time.Duration // the agent's clock minus the coordinator's
	wall   time.Duration // the same of their wall clocks, for people
	within time.Duration // upper bound of the error of offset and wall
}

// estimate uses the sample with the shortest round trip. The agent read its clock somewhere in it,
// so the error is at most half of the round trip. An average would contain all delays of the network.
func estimate(samples []sample) clock {
	best := samples[0]
	for _, s := range samples[1:] {
		if s.roundTrip() < best.roundTrip() {
			best = s
		}
	}
	half := best.roundTrip() / 2
	return clock{offset: best.read - (best.sent + half), wall: best.wall, within: half}
}

func (c clock) agent(coordinator time.Duration) time.Duration { return coordinator + c.offset }

func (c clock) coordinator(agent time.Duration) time.Duration { return agent - c.offset }
