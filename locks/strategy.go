package locks

import (
	"context"

	"oversell/api"
	"oversell/stock"
)

// Strategy takes pieces from the stock while requests on other replicas do the same.
type Strategy interface {
	// Card describes the strategy. It is constant, and needs no backend.
	Card() api.Card
	// Deduct takes o.Qty pieces or none. Without an error, the pieces were taken once. With an error
	// for which NothingTaken is true, none was taken. With any other error the outcome is unknown, and
	// a retry could take the pieces twice.
	Deduct(ctx context.Context, o stock.Order) (stock.Receipt, error)
}

// Cleaner can delete a key's data from its backend, for a reset. A holder then loses its lock.
type Cleaner interface {
	Clear(ctx context.Context, key string) error
}
