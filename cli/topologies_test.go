package cli_test

import (
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"oversell/api"
	"oversell/lab/rig"
	"oversell/lab/rig/rigtest"
	"oversell/locks/catalog"
)

// TestRunOnTopologies runs the whole comparison with Redis behind Sentinel, with clusters of Redis and of
// MariaDB, and with ensembles of ZooKeeper and etcd. It takes minutes, so it needs OVERSELL_TOPOLOGIES.
func TestRunOnTopologies(t *testing.T) {
	if os.Getenv("OVERSELL_TOPOLOGIES") == "" {
		t.Skip("make topologies runs it")
	}
	for name, change := range map[string]func(*rig.Config){
		"sentinel":  func(c *rig.Config) { c.RedisTopology = rig.RedisSentinel },
		"cluster":   func(c *rig.Config) { c.RedisTopology = rig.RedisCluster },
		"Galera":    func(c *rig.Config) { c.Database = rig.GaleraCluster },
		"TLS":       func(c *rig.Config) { c.TLS, c.Zookeeper = true, 3 },
		"ensembles": func(c *rig.Config) { c.Zookeeper, c.Etcd = 3, 3 },
	} {
		t.Run(name, func(t *testing.T) {
			cfg := rig.FullLab(built(), token)
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

// TestLabTopologies starts labs with these flags, and sells one piece with a strategy on their servers.
func TestLabTopologies(t *testing.T) {
	rigtest.Nightly(t, "TestLabCommand of ./cli, TestConfig of ./lab/rig")
	t.Parallel()
	for _, test := range []struct{ flags, strategies, prefix string }{
		{"--redis sentinel", "redis", "redis-sentinel://"},
		{"--redis cluster", "redis", "redis-cluster://"},
		{"--zookeeper 3 --etcd 3", "zk etcd", ""},
		{"--mysql galera --tls --replicas 1", "for-update get-lock redis", ""},
		{"--tls", "for-update redis redlock zk etcd", ""},
	} {
		t.Run(test.flags, func(t *testing.T) {
			if strings.Contains(test.flags, "galera") {
				rigtest.NeedsPair(t, rig.GaleraCluster)
			}
			file := filepath.Join(t.TempDir(), "lab.json")
			cmd := exec.CommandContext(t.Context(), built(), append([]string{"lab", "--json", file, "--token", token}, strings.Fields(test.flags)...)...)
			errOut, err := os.Create(filepath.Join(t.TempDir(), "log"))
			if err != nil {
				t.Fatal(err)
			}
			cmd.Stderr = errOut
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			var addrs rig.Addresses
			rigtest.Eventually(t, "the lab is ready", func() (bool, string) {
				text, _ := os.ReadFile(file) //nolint:gosec // of this test
				return json.Unmarshal(text, &addrs) == nil, read(t, errOut.Name())
			})
			if !strings.HasPrefix(addrs.SingleRedis, test.prefix) || strings.Contains(test.flags, "--zookeeper") && (len(addrs.Zookeeper) != 3 || len(addrs.Etcd) != 3) {
				t.Errorf("addresses %+v", addrs)
			}
			for _, strategy := range strings.Fields(test.strategies) {
				if r := ask(t, http.MethodPost, addrs.Target, "/check/lock?strategy="+strategy); r.HTTP != http.StatusOK {
					t.Errorf("%s: %+v", strategy, r)
				}
			}
			if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
				t.Fatal(err)
			}
			if err := cmd.Wait(); err != nil {
				t.Errorf("%v: %s", err, read(t, errOut.Name()))
			}
		})
	}
}
