package handlers

import (
	"context"

	"github.com/gin-gonic/gin"

	"oversell/api"
	"oversell/locks"
	"oversell/stock"
)

// granularities has the id and key of the lock for each parameter grain (tutorial document 003).
var granularities = map[string]func(o stock.Order) (lock, key string){ //nolint:gochecknoglobals // a table, never written
	"none": func(stock.Order) (string, string) { return "", "" },
	// This lock is too fine: no two requests share a key, so it excludes no request.
	"order": func(o stock.Order) (string, string) { return "redis", api.Key(o.Product) + ":" + o.Owner },
	"each":  func(o stock.Order) (string, string) { return "redis", api.Key(o.Product) },
	// This lock is too coarse: it is correct, but the sales of all products wait for each other.
	"all": func(stock.Order) (string, string) { return "redis", allGoods },
}

const allGoods = "stock:all"

type fixedKey struct {
	locks.Locker
	key string
}

func (l fixedKey) Acquire(ctx context.Context, r locks.Request) (*locks.Lock, error) {
	r.Key = l.key
	return l.Locker.Acquire(ctx, r)
}

func (s *Service) postGoodsOrder(c *gin.Context) (any, error) {
	p, id := rowParams(c, "grain", "hold", "wait")
	name, granularity := choice(p, "grain", "each", granularities)
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
	lock, key := granularity(o)
	locker, err := s.locker(lock)
	if err != nil {
		return nil, err
	}
	receipt, err := locks.Guard(fixedKey{locker, key}, s.Ledger).Deduct(ctx, o)
	if err != nil {
		p := describe(err)
		p.WaitedMS = ms(receipt.Waited)
		return nil, p
	}
	return s.sale("goods-"+name, o, receipt, requestLanguage(c)), nil
}
