package lockstest

import (
	"context"
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

	// Outages has one Outage for each backend that the card names. Only the check that stops backends needs it.
	Outages map[string]Outage
}

// Outage has the functions that stop a backend and start it again.
type Outage struct {
	Stop, Start func(ctx context.Context) error
}
