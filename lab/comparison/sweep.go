package comparison

import (
	"context"
	"fmt"
	"slices"
	"time"

	"oversell/api"
	"oversell/lab/load"
)

// sweepLength limits the time of each run of a sweep, because some strategies are slow.
// sweepRequests limits the requests of each run, because they need memory.
const (
	sweepLength   = 5 * time.Second
	sweepRequests = 20_000
)

// Steps returns the bounds from and to, and the numbers 1, 2, 5, 10 and so on between them.
func Steps(from, to int) []int {
	all := []int{from, to}
	for decade := 1; decade <= load.MaxClients; decade *= 10 {
		for _, step := range []int{1, 2, 5} {
			if n := decade * step; n > from && n < to {
				all = append(all, n)
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// keepStock reads the stock before a sweep, which sets its own. restore sets the old count again,
// also after an interrupted sweep.
func keepStock(ctx context.Context, service api.Client) (restore func(), err error) {
	before, err := service.Stock(ctx, "none", product)
	if err != nil {
		return nil, fmt.Errorf("read the stock before the sweep: %w", err)
	}
	return func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		_, _ = service.ResetStock(ctx, product, before.Count) // the next run resets the stock in any case
	}, nil
}

func (p Plan) at(clients int) Plan {
	p.Clients, p.Length = clients, sweepLength
	p.Loops = (sweepRequests + max(clients, 1) - 1) / max(clients, 1)
	p.Stock = min(MaxStock, p.Clients*p.Loops*max(p.Qty, 1))
	return p
}
