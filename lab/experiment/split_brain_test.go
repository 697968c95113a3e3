package experiment

import (
	"testing"

	"oversell/lab/chaos"
)

// TestTopologyApplies checks that a hazard of a topology leaves out the strategies on servers that its lab
// does not have, even if their cards claim to survive a fail-over.
func TestTopologyApplies(t *testing.T) {
	for _, c := range open(t).Cards {
		want, known := map[string]bool{"redis": true, "redis-lua": true, "redis-watch": false, "redlock": false, "zk": false, "for-update": false}[c.ID]
		if !known {
			continue
		}
		for _, e := range []Experiment{failoverSentinel(), failoverCluster(), splitBrain(), minReplicas(), quorumLoss(), resharding()} {
			if got := e.AppliesTo(c); got != want {
				t.Errorf("%s applies to %s: %t, want %t", e.Hazard, c.ID, got, want)
			}
		}
		if c.ID == "zk" && !failover().AppliesTo(c) {
			t.Error("failover does not apply to zk, whose card claims to survive it")
		}
	}
}

// TestInEachOrder checks that twelve seeds have all pairs of stops, and 24 seeds all of them on both sides.
func TestInEachOrder(t *testing.T) {
	for e, want := range map[*Experiment]int{new(failoverSentinel()): 12, new(splitBrain()): 24, new(minReplicas()): 3, new(quorumLoss()): 9, new(resharding()): 30} {
		plans := map[string]bool{}
		for _, text := range e.Plans {
			plans[text] = true
			if p, err := chaos.Parse(text); err != nil || p.String() != text {
				t.Errorf("%s: %s, %v", text, p, err)
			}
		}
		if len(plans) != want || len(e.Plans) != want {
			t.Errorf("%s has %d plans, of which %d are different", e.Hazard, len(e.Plans), len(plans))
		}
	}
}
