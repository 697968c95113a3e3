package comparison

import (
	"slices"
	"time"

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

func (p Plan) at(clients int) Plan {
	p.Clients, p.length = clients, sweepLength
	p.Loops = (sweepRequests + max(clients, 1) - 1) / max(clients, 1)
	p.Stock = min(MaxStock, p.Clients*p.Loops*max(p.Qty, 1))
	return p
}
