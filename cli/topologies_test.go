package cli_test

import (
	"os"
	"slices"
	"testing"

	"oversell/api"
	"oversell/lab/rig"
	"oversell/lab/rig/rigtest"
	"oversell/locks/catalog"
)

// TestRunOnTopologies runs the whole comparison with Redis behind Sentinel, with a cluster of Redis, and with
// ensembles of ZooKeeper and etcd. It takes minutes, so it needs OVERSELL_TOPOLOGIES.
func TestRunOnTopologies(t *testing.T) {
	if os.Getenv("OVERSELL_TOPOLOGIES") == "" {
		t.Skip("make topologies runs it")
	}
	for name, change := range map[string]func(*rig.Config){
		"sentinel":  func(c *rig.Config) { c.RedisTopology = rig.RedisSentinel },
		"cluster":   func(c *rig.Config) { c.RedisTopology = rig.RedisCluster },
		"ensembles": func(c *rig.Config) { c.ZookeeperServers, c.EtcdServers = 3, 3 },
	} {
		t.Run(name, func(t *testing.T) {
			cfg := rig.FullLab("", token)
			cfg.Ports = rig.Ports{}
			change(&cfg)
			lab := rigtest.Start(t, cfg)
			got := runProgram(t, lab.Config().Binary, "--all", "-q", "--target", lab.Addresses().Target, "--clients", "50", "--loops", "10", "--json", "-")
			results := rows(t, got.out)
			if len(results) != len(catalog.Cards()) {
				t.Errorf("%d strategies ran, of %d: %s", len(results), len(catalog.Cards()), got.err)
			}
			for _, r := range results {
				i := slices.IndexFunc(catalog.Cards(), func(c api.Card) bool { return c.ID == r.Strategy })
				card := catalog.Cards()[i]
				t.Logf("%-20s %d requests, %d errors, sold %d, lost %d", r.Strategy, r.Samples, r.Errors, r.Sold, r.Lost)
				if card.Safe && (r.Lost != 0 || r.Sold == 0) {
					t.Errorf("%s: sold %d, lost %d", r.Strategy, r.Sold, r.Lost)
				}
			}
		})
	}
}
