package handlers

import (
	"context"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"

	"oversell/api"
	"oversell/locks"
	"oversell/stock"
)

// A lock should be as fine as the goods (tutorial document 003: name it after the product).
var grains = map[string]func(o stock.Order) (lock, key string){ //nolint:gochecknoglobals // a table, never written
	"none": func(stock.Order) (string, string) { return "", "" },
	// So fine that nobody ever meets anybody: as good as none.
	"order": func(o stock.Order) (string, string) { return "redis", api.Key(o.Product) + ":" + o.Owner },
	"each":  func(o stock.Order) (string, string) { return "redis", api.Key(o.Product) },
	// Right, and everybody waits for everybody.
	"all": func(stock.Order) (string, string) { return "redis", allGoods },
}

// allGoods is what the whole shop locks.
const allGoods = "stock:all"

func (s *Service) routeGoods() { s.engine.POST("/goods/:id/orders", s.postGoodsOrder) }

// postGoodsOrder sells one piece of a product under a lock of the grain that is asked for.
func (s *Service) postGoodsOrder(c *gin.Context) {
	p, id := rowParams(c, "grain", "hold", "wait")
	name, grain := choice(p, "grain", "each", grains)
	o := stock.Order{
		Product: id, Qty: 1, Owner: s.newOwner(),
		Work: p.duration("hold", 0, 0), Wait: p.duration("wait", defaultWait, 0),
	}
	if p.err != nil {
		s.badRequest(c, p.err)
		return
	}
	lock, key := grain(o)
	receipt, err := s.sellGoods(s.traced(c.Request.Context(), "goods"), lock, key, o)
	if err != nil {
		refusal := describe(err)
		refusal.WaitedMS = ms(receipt.Waited)
		s.problem(c, refusal)
		return
	}
	c.JSON(http.StatusOK, api.Sale{
		Outcome: api.Sold, Strategy: "goods-" + name, Replica: s.Replica, Product: id, Qty: o.Qty, Remaining: left(receipt.Remaining),
		WaitedMS: ms(receipt.Waited), HeldMS: ms(receipt.Held), Warning: receipt.Warning,
	})
}

// sellGoods is the same sale in every grain: only what is locked differs. What is sold is
// traced under the product, also where the lock is another.
func (s *Service) sellGoods(ctx context.Context, lock, key string, o stock.Order) (r stock.Receipt, err error) {
	if err := s.has(ctx, o.Product); err != nil {
		return r, err
	}
	asked, goods := time.Now(), task{key: api.Key(o.Product), owner: o.Owner}
	held, err := s.acquireGuard(ctx, lock, task{key: key, owner: o.Owner, wait: o.Wait})
	granted := time.Now()
	r.Waited = granted.Sub(asked)
	if err != nil {
		return r, err
	}
	defer func() { r.Held, r.Warning = time.Since(granted), held.release(ctx) }()
	item, err := s.Ledger.Read(held.context(ctx), o.Product)
	if err != nil {
		return r, err
	}
	goods.trace(ctx, api.Read)
	if item.Count < o.Qty {
		return r, stock.ErrSoldOut
	}
	if err := locks.Work(held.context(ctx), o.Work); err != nil {
		return r, err
	}
	writer, err := s.Ledger.Connect(held.context(ctx))
	if err != nil {
		return r, err
	}
	defer writer.Close()
	if err := held.verify(); err != nil {
		return r, err
	}
	r.Remaining = item.Count - o.Qty
	goods.trace(ctx, api.Writing)
	if err := writer.Write(ctx, o.Product, r.Remaining); err != nil {
		return r, err
	}
	goods.trace(ctx, api.Written)
	return r, nil
}
