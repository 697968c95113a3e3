package comparison

import (
	"slices"
	"time"

	"oversell/lab/load"
)

// A point of a sweep lasts so long, which is enough for a figure and short enough for a
// class. A strategy that polls may crawl, so time is the bound that counts; requests
// only bound what is kept in memory, and the stock.
const (
	sweepLength   = 5 * time.Second
	sweepRequests = 20_000
)

// Steps are the clients of a sweep between two bounds: 1, 2, 5, 10 and so on, and the
// bounds themselves.
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

// at is the plan as one point of its sweep.
func (p Plan) at(clients int) Plan {
	p.Clients, p.length = clients, sweepLength
	p.Loops = (sweepRequests + max(clients, 1) - 1) / max(clients, 1)
	p.Stock = min(MaxStock, p.Clients*p.Loops*max(p.Qty, 1))
	return p
}
