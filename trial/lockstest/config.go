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
	// Count returns the remaining count of a product, wherever the strategy keeps it.
	Count func(ctx context.Context, product int64) (int, error)

	// Lease is the lease in checks in which a lease must expire. It is short, but long enough that a
	// holder on a busy machine can renew it in time.
	Lease time.Duration
	// Timeout is how long a check waits for an event. It is generous, because an event that comes
	// later counts as missing.
	Timeout time.Duration
}
