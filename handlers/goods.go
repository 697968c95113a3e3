package handlers

import (
	"context"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"

	"oversell/locks"
	"oversell/stock"
)

// A lock should be as fine as the goods (tutorial document 003: name it after the product).
const (
	// grainOrder is a lock for each order: so fine that nobody ever meets anybody, and as
	// good as none.
	grainOrder = "order"
	// grainEach is a lock for each product.
	grainEach = "each"
	// grainAll is one lock for the whole shop: right, and everybody waits for everybody.
	grainAll = "all"
)

// allGoods is what the whole shop locks.
const allGoods = "stock:all"

func (s *Service) routeGoods() { s.engine.POST("/goods/:id/orders", s.orderGoods) }

// orderGoods sells one piece of a product under the redis lock, in the grain that is asked for.
func (s *Service) orderGoods(c *gin.Context) {
	id, bad := productID(c)
	p := newParams(c.Request, []string{"grain", "hold", "wait"})
	grain := p.text("grain", grainEach)
	order := stock.Order{
		Product: id, Qty: 1, Owner: s.newOwner(),
		Work: p.duration("hold", 0, 0), Wait: p.duration("wait", defaultWait, 0),
	}
	key := locks.Key(id)
	switch grain {
	case unguarded, grainEach:
	case grainAll:
		key = allGoods
	case grainOrder:
		key += ":" + order.Owner
	default:
		p.fail("grain", grain, "one of none, order, each, all")
	}
	if bad == nil {
		bad = p.err
	}
	if bad != nil {
		s.badRequest(c, bad)
		return
	}
	var receipt stock.Receipt
	err := s.sellGoods(s.traced(c.Request.Context(), "goods"), grain, key, order, &receipt)
	if err != nil {
		refusal := describe(err)
		refusal.WaitedMS = ms(receipt.Waited)
		s.problem(c, refusal)
		return
	}
	c.JSON(http.StatusOK, sold{
		Outcome: "sold", Strategy: "goods-" + grain, Replica: s.Replica, Product: id, Qty: order.Qty, Remaining: left(receipt.Remaining),
		WaitedMS: ms(receipt.Waited), HeldMS: ms(receipt.Held), Warning: receipt.Warning,
	})
}

// sellGoods is the same sale in every grain; only what is locked differs.
func (s *Service) sellGoods(ctx context.Context, grain, key string, o stock.Order, r *stock.Receipt) (err error) {
	asked := time.Now()
	take := func(ctx context.Context, hold *locks.Hold) error {
		granted := time.Now()
		r.Waited = granted.Sub(asked)
		defer func() { r.Held = time.Since(granted) }()
		item, err := s.Ledger.Read(ctx, o.Product)
		if err != nil {
			return err
		}
		locks.Trace(ctx, locks.Read, locks.Key(o.Product), o.Owner, 0)
		if item.Count < o.Qty {
			return stock.ErrSoldOut
		}
		if err := locks.Work(ctx, o.Work); err != nil {
			return err
		}
		if err := trusted(hold); err != nil {
			return err
		}
		r.Remaining = item.Count - o.Qty
		locks.Trace(ctx, locks.Writing, locks.Key(o.Product), o.Owner, 0)
		if err := s.Ledger.Write(ctx, o.Product, r.Remaining); err != nil {
			return err
		}
		locks.Trace(ctx, locks.Written, locks.Key(o.Product), o.Owner, 0)
		return nil
	}
	if grain == unguarded {
		return take(ctx, nil)
	}
	request := locks.Request{Key: key, Owner: o.Owner, Wait: o.Wait}
	r.Warning, err = underLock(ctx, s.Lockers["redis"], request, func(hold *locks.Hold) error { return take(hold.Context(), hold) })
	if r.Waited == 0 {
		r.Waited = time.Since(asked) // in vain
	}
	return err
}
