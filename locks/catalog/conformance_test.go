package catalog_test

import (
	"context"
	"errors"
	"os"
	"slices"
	"testing"
	"time"

	"oversell/api"
	"oversell/lab/rig"
	"oversell/lab/rig/rigtest"
	"oversell/locks/lockstest"
)

// chosen returns the cards of the strategies that the service is known by and of one of etcd, or all cards in
// make nightly.
func chosen() []api.Card {
	basic := []string{"none", "mutex", "for-update", "version", "db-row", "redis", "redlock", "zk", "etcd"}
	return slices.DeleteFunc(cards(), func(c api.Card) bool { return !rigtest.IsNightly() && !slices.Contains(basic, c.ID) })
}

// TestConformance runs the conformance suite lockstest on strategies of the catalogue.
func TestConformance(t *testing.T) {
	t.Parallel()
	bed := newTestbed(t, servers)
	for _, card := range chosen() {
		t.Run(card.ID, func(t *testing.T) {
			t.Parallel()
			conforms(t, bed.config(card))
		})
	}
}

// conforms runs all checks that apply to the card as subtests: in parallel, and then the busy ones, one by one. It
// leaves out the checks that must run alone.
func conforms(t *testing.T, cfg *lockstest.Config) {
	t.Run("together", func(t *testing.T) {
		each(t, cfg, func(c lockstest.Check) bool { return !c.Alone && !c.Busy }, (*testing.T).Parallel)
	})
	each(t, cfg, func(c lockstest.Check) bool { return c.Busy }, func(*testing.T) {})
}

func alone(c lockstest.Check) bool { return c.Alone }

// each runs the chosen checks that apply to the card as subtests. It calls begin first in each.
func each(t *testing.T, cfg *lockstest.Config, chosen func(lockstest.Check) bool, begin func(*testing.T)) {
	for _, c := range lockstest.Checks() {
		if !chosen(c) || c.Claim(cfg.Card) == lockstest.Silent {
			continue
		}
		t.Run(c.Name, func(t *testing.T) {
			begin(t)
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
			defer cancel()
			if err := c.Run(ctx, cfg); err != nil {
				t.Errorf("the card of %s claims: %s\nthe check found: %v", cfg.Card.ID, c.Claimed(cfg.Card), err)
			}
		})
	}
}

// TestTopologies runs the suite on the strategies of MySQL with a Galera cluster, of Redis behind Sentinel and
// with a cluster, and on those of ZooKeeper and etcd with ensembles. It takes minutes, so it needs OVERSELL_TOPOLOGIES.
func TestTopologies(t *testing.T) {
	if os.Getenv("OVERSELL_TOPOLOGIES") == "" {
		t.Skip("make topologies runs it")
	}
	for name, test := range map[string]struct {
		change   func(*rig.Config)
		backends []string
	}{
		"sentinel":  {func(c *rig.Config) { c.RedisTopology = rig.RedisSentinel }, []string{"redis"}},
		"cluster":   {func(c *rig.Config) { c.RedisTopology = rig.RedisCluster }, []string{"redis"}},
		"Galera":    {func(c *rig.Config) { c.Database = rig.GaleraCluster }, []string{"mysql"}},
		"TLS":       {func(c *rig.Config) { c.TLS = true }, []string{"mysql", "redis", "redlock", "zookeeper", "etcd"}},
		"ensembles": {func(c *rig.Config) { c.Zookeeper, c.Etcd = 3, 3 }, []string{"zookeeper", "etcd"}},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := backends()
			test.change(&cfg)
			bed := newTestbed(t, rigtest.Start(t, cfg))
			for _, card := range cards() {
				if !slices.ContainsFunc(test.backends, func(b string) bool { return slices.Contains(card.Backends, b) }) {
					continue
				}
				t.Run(card.ID, func(t *testing.T) {
					t.Parallel()
					conforms(t, bed.config(card))
				})
			}
		})
	}
}

// TestOutages runs the checks that stop servers, on a rig that no other test uses.
func TestOutages(t *testing.T) {
	t.Parallel()
	r := rigtest.Start(t, backends())
	bed := newTestbed(t, r)
	for _, card := range chosen() {
		t.Run(card.ID, func(t *testing.T) {
			cfg := bed.config(card)
			cfg.Timeout = time.Minute
			cfg.Outages = map[string]lockstest.Outage{
				"mysql": outage(t, r, "mysql"), "zookeeper": outage(t, r, "zookeeper"), "etcd": outage(t, r, "etcd"),
				"redis": outage(t, r, "redis-1"), "redlock": outage(t, r, "redis-3", "redis-4", "redis-5"),
			}
			each(t, cfg, alone, func(*testing.T) {})
		})
	}
}

// outage returns an Outage that stops all the named servers of the rig, and starts them again.
func outage(t *testing.T, r *rig.Rig, names ...string) lockstest.Outage {
	t.Helper()
	var all []*rig.Server
	for _, name := range names {
		s, err := r.Server(name)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, s)
	}
	each := func(do func(*rig.Server) error) error {
		var errs []error
		for _, s := range all {
			errs = append(errs, do(s))
		}
		return errors.Join(errs...)
	}
	return lockstest.Outage{
		Stop:  func(ctx context.Context) error { return each(func(s *rig.Server) error { return s.Stop(ctx) }) },
		Start: func(ctx context.Context) error { return each(func(s *rig.Server) error { return s.Start(ctx) }) },
	}
}
