package handlers

import (
	"context"

	"github.com/gin-gonic/gin"

	"oversell/locks"
	"oversell/stock"
)

// granularity is the id of a lock, and the key under which a sale acquires it.
type granularity struct {
	lock string
	key  func(sale locks.Request) string
}

// granularities has the lock for each parameter grain (tutorial document 003).
var granularities = map[string]granularity{ //nolint:gochecknoglobals // a table, never written
	"none": {"", func(locks.Request) string { return "" }},
	// This lock is too fine: no two requests share a key, so it excludes no request.
	"order": {"redis", func(sale locks.Request) string { return sale.Key + ":" + sale.Owner }},
	"each":  {"redis", func(sale locks.Request) string { return sale.Key }},
	// This lock is too coarse: it is correct, but the sales of all products wait for each other.
	"all": {"redis", func(locks.Request) string { return allGoods }},
}

const allGoods = "stock:all"

// grained is a lock of another granularity than one for each product.
type grained struct {
	locks.Locker
	key func(sale locks.Request) string
}

func (l grained) Acquire(ctx context.Context, r locks.Request) (*locks.Lock, error) {
	r.Key = l.key(r)
	return l.Locker.Acquire(ctx, r)
}

// goodsStrategies returns the strategy for each granularity whose lock this replica offers.
func (s *Service) goodsStrategies() map[string]locks.Strategy {
	all := map[string]locks.Strategy{}
	for name, g := range granularities {
		if locker, err := s.locker(g.lock); err == nil {
			all[name] = locks.Guard(grained{locker, g.key}, s.Ledger)
		}
	}
	return all
}

func (s *Service) postGoodsOrder(c *gin.Context) (any, error) {
	p, id := rowParams(c, "grain", "hold", "wait")
	name, grain := choice(p, "grain", "each", granularities)
	o := stock.Order{
		Product: id, Qty: 1, Owner: s.newOwner(),
		Work: p.duration("hold", 0, 0), Wait: p.duration("wait", defaultWait, 0),
	}
	if p.err != nil {
		return nil, p.err
	}
	ctx := s.traced(c.Request.Context(), "goods")
	if err := s.has(ctx, o.Product); err != nil {
		return nil, err
	}
	if _, err := s.locker(grain.lock); err != nil {
		return nil, err
	}
	receipt, err := s.goods[name].Deduct(ctx, o)
	if err != nil {
		p := s.describe(err)
		p.Owner, p.WaitedMS = o.Owner, ms(receipt.Waited)
		return nil, p
	}
	return s.sale("goods-"+name, o, receipt, requestLanguage(c)), nil
}
