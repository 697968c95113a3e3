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
	"oversell/stock"
	"oversell/trial/lockstest"
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

// conforms runs all checks that apply to the card as subtests: in parallel, and then the busy ones, one by one.
func conforms(t *testing.T, cfg *lockstest.Config) {
	t.Run("together", func(t *testing.T) {
		each(t, cfg, func(c lockstest.Check) bool { return !c.Busy }, (*testing.T).Parallel)
	})
	each(t, cfg, func(c lockstest.Check) bool { return c.Busy }, func(*testing.T) {})
}

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
			if err := c.Run(ctx, cfg); errors.Is(err, lockstest.ErrBusy) {
				t.Skip(err)
			} else if err != nil {
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

// TestOutages stops and restarts each backend of a strategy, on a rig that no other test uses. The backend must be
// named in an error at once, and used again when it is back, without opening the strategy again.
func TestOutages(t *testing.T) {
	t.Parallel()
	r := rigtest.Start(t, backends())
	bed := newTestbed(t, r)
	for _, card := range chosen() {
		if !card.Locker && card.BrokenBy(api.Failover) {
			continue // its stock is lost with its backend, which the experiment for this hazard judges
		}
		t.Run(card.ID, func(t *testing.T) { sellsAfterOutages(t, r, bed, card) })
	}
}

func sellsAfterOutages(t *testing.T, r *rig.Rig, bed *testbed, card api.Card) {
	t.Helper()
	const stocked = 100
	product, err := bed.newProduct(t.Context(), stocked)
	if err != nil {
		t.Fatal(err)
	}
	const patience = 20 * time.Second // generous, for a busy machine
	sell := func(owner string, wait time.Duration) error {
		ctx, cancel := context.WithTimeout(t.Context(), wait+patience)
		defer cancel()
		_, err := bed.strategies[card.ID].Deduct(ctx, stock.Order{Product: product, Qty: 1, Owner: owner, Wait: wait})
		return err
	}
	for _, backend := range card.Backends {
		if err := sell("before", patience); err != nil {
			t.Fatal("a sale before the outage:", err)
		}
		stop(t, r, backend, func() {
			for _, wait := range []time.Duration{0, time.Second} {
				down := (*stock.Unavailable)(nil)
				if err := sell("during", wait); !errors.As(err, &down) || down.Backend != backend {
					t.Errorf("without %s, a sale with a wait of %v: %v", backend, wait, err)
				}
			}
		})
		began := time.Now()
		err := sell("after", patience)
		for errors.Is(err, stock.ErrUnavailable) && time.Since(began) < time.Minute {
			time.Sleep(100 * time.Millisecond)
			err = sell("after", patience)
		}
		if err != nil {
			t.Fatalf("a sale %v after the return of %s: %v", time.Since(began), backend, err)
		}
	}
	made := 2 * len(card.Backends)
	if left, err := bed.count(t.Context(), card.ID, product); err != nil || left != stocked-made {
		t.Errorf("%d of %d pieces were sold, and %d are left: %v", made, stocked, left, err)
	}
}

// stop stops a backend while meanwhile runs. Of Redlock's servers, it stops a majority.
func stop(t *testing.T, r *rig.Rig, backend string, meanwhile func()) {
	t.Helper()
	names := map[string][]string{"redis": {"redis-1"}, "redlock": {"redis-3", "redis-4", "redis-5"}}[backend]
	if names == nil {
		names = []string{backend}
	}
	for _, name := range names {
		s, err := r.Server(name)
		if err == nil {
			err = s.Stop(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := s.Start(context.WithoutCancel(t.Context())); err != nil {
				t.Fatal(err)
			}
		}()
	}
	meanwhile()
}
