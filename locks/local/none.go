// Package local holds the strategies that use no server except the MySQL server with the stock.
package local

import (
	"context"
	"time"

	"oversell/api"
	"oversell/locks"
	"oversell/stock"
)

// None reads the count and then writes the new count, without a lock (tutorial 1.2, 1.3).
func None(ledger *stock.Ledger) locks.Strategy { return none{ledger} }

type none struct{ ledger *stock.Ledger }

func (s none) Deduct(ctx context.Context, o stock.Order) (r stock.Receipt, err error) {
	began := time.Now()
	defer func() { r.Held = time.Since(began) }()
	key := api.Key(o.Product)
	item, err := s.ledger.Read(ctx, o.Product)
	if err != nil {
		return r, err
	}
	locks.Trace(ctx, api.Read, key, o.Owner, 0)
	if item.Count < o.Qty {
		return r, stock.ErrSoldOut
	}
	if err := locks.Work(ctx, o.Work); err != nil {
		return r, err
	}
	// DANGER: another request that has read the same count writes the same result. Then two
	// pieces are sold, but the stock falls by one. None exists to show this error.
	r.Remaining = item.Count - o.Qty
	locks.Trace(ctx, api.Writing, key, o.Owner, 0)
	if err := s.ledger.Write(ctx, item, r.Remaining); err != nil {
		return r, err
	}
	locks.Trace(ctx, api.Written, key, o.Owner, 0)
	return r, nil
}

func (none) Card() api.Card {
	return api.Card{
		ID: "none", Family: "local", Source: "1.2, 1.3", Scope: api.ScopeNone,
		Core: true, Backends: []string{"mysql"}, CriticalStep: api.Read,
		Title: api.Text{EN: "No lock", ZH: "无锁"},
		Summary: api.Text{
			EN: "SELECT the count, then UPDATE it to one less. Two requests that read the same count sell two pieces, and the stock falls by one.",
			ZH: "先查库存，再更新为减一：两个请求读到同一个数，卖出两件，库存只少一件。",
		},
		When: api.Text{
			EN: "Not for production: two requests at once lose an update. Use `atomic` if one statement can check and write, otherwise `for-update`.",
			ZH: "不要用于生产环境：两个请求同时到就会超卖。一条语句能判断并写入就用 `atomic`，否则用 `for-update`。",
		},
		Breaks: []api.Break{
			{Hazard: api.Race, Why: api.Text{
				EN: "Between the read and the write, any other request may read or write the count.",
				ZH: "读和写之间，没有任何东西挡住别的请求。",
			}},
			{Hazard: api.ReplicaRace, Why: api.Text{
				EN: "The same with requests on other replicas.",
				ZH: "同上，请求来自不同的副本。",
			}},
		},
		Tutorial: []api.Figure{{Throughput: 473.8, MedianMS: 173, Remaining: 4870}},
	}
}
