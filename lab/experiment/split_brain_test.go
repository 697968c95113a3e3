package experiment

import "testing"

// TestTopologyApplies checks that a hazard of a topology leaves out the strategies on servers that its lab
// does not have, even if their cards claim to survive a fail-over.
func TestTopologyApplies(t *testing.T) {
	for _, c := range open(t).cards {
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

// TestInOrder checks that twelve seeds have all pairs of stops, and 24 seeds all of them on both sides.
func TestInOrder(t *testing.T) {
	pairs, sides := map[[2]string]bool{}, map[[3]any]bool{}
	for seed := int64(1); seed <= 24; seed++ {
		s := inOrder(Experiment{}, seed)
		if seed <= 12 {
			pairs[[2]string{s.step, s.contenderStops}] = true
		}
		sides[[3]any{s.step, s.contenderStops, oldSide(seed)}] = true
	}
	if len(pairs) != 12 || len(sides) != 24 {
		t.Errorf("12 seeds have %d pairs of stops, 24 seeds have %d with sides", len(pairs), len(sides))
	}
}
