package lockstest

import (
	"context"
	"testing"
	"time"

	"oversell/api"
)

// Config describes the strategy under test and the environment of its checks.
type Config struct {
	Card    api.Card
	Workers *Workers

	// NewProduct adds a product to the stock. Each check has its own product, and so its own key.
	NewProduct func(ctx context.Context, count int) (int64, error)
	// Count returns the remaining count of a product.
	Count func(ctx context.Context, product int64) (int, error)

	// Lease is the lease in checks in which a lease must expire. It is short, but long enough that a
	// holder on a busy machine can renew it in time.
	Lease time.Duration
	// Timeout is how long a check waits for an event. It is generous, because an event that comes
	// later counts as missing.
	Timeout time.Duration

	// Outages has one Outage for each backend that the card names. Only RunAlone needs it.
	Outages map[string]Outage
}

// Outage has the functions that stop a backend and start it again.
type Outage struct {
	Stop, Start func(ctx context.Context) error
}

// Run runs all checks that apply to the card as subtests: in parallel, and then the busy ones, one by one. It leaves
// out the checks that must run alone.
func Run(t *testing.T, cfg *Config) {
	t.Run("together", func(t *testing.T) {
		each(t, cfg, func(c Check) bool { return !c.Alone && !c.Busy }, (*testing.T).Parallel)
	})
	each(t, cfg, func(c Check) bool { return c.Busy }, func(*testing.T) {})
}

// RunAlone runs the checks that stop backends, one after the other.
func RunAlone(t *testing.T, cfg *Config) {
	each(t, cfg, func(c Check) bool { return c.Alone }, func(*testing.T) {})
}

const checkTimeout = 3 * time.Minute

// each runs the chosen checks that apply to the card as subtests. It calls begin first in each.
func each(t *testing.T, cfg *Config, chosen func(Check) bool, begin func(*testing.T)) {
	for _, c := range Checks() {
		if !chosen(c) || c.Claim(cfg.Card) == Silent {
			continue
		}
		t.Run(c.Name, func(t *testing.T) {
			begin(t)
			ctx, cancel := context.WithTimeout(t.Context(), checkTimeout)
			defer cancel()
			if err := c.Run(ctx, cfg); err != nil {
				t.Errorf("the card of %s claims: %s\nthe check found: %v", cfg.Card.ID, c.Claimed(cfg.Card), err)
			}
		})
	}
}
