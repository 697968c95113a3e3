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

// checkLock deducts: check the stock, lock it, as the tutorial's route is called.
func (s *Service) checkLock(c *gin.Context) {
	strategy, order, bad := s.order(c.Request)
	if bad != nil {
		s.badRequest(c, bad)
		return
	}
	id := strategy.Card().ID
	var receipt stock.Receipt
	var err error
	// A stock that is kept elsewhere is sold while MySQL is away, and never locked by name.
	if strategy.Card().Stock == "" {
		err = s.has(c.Request.Context(), order.Product)
	}
	if err == nil {
		receipt, err = strategy.Deduct(s.traced(c.Request.Context(), id), order)
	}
	if err != nil {
		p := describe(err)
		p.Strategy, p.WaitedMS, p.Retries = id, ms(receipt.Waited), receipt.Retries
		s.metrics.observe(id, p.Outcome, receipt)
		s.problem(c, p)
		return
	}
	s.metrics.observe(id, api.Sold, receipt)
	c.JSON(http.StatusOK, api.Sale{
		Outcome: api.Sold, Strategy: id, Replica: s.Replica, Product: order.Product, Qty: order.Qty,
		Remaining: left(receipt.Remaining), Fence: receipt.Fence,
		WaitedMS: ms(receipt.Waited), HeldMS: ms(receipt.Held), PooledMS: ms(receipt.Pooled),
		Retries: receipt.Retries, Warning: receipt.Warning,
	})
}

// left is what remains, where the strategy knows.
func left(remaining int) *int {
	if remaining == stock.Uncounted {
		return nil
	}
	return &remaining
}

// traced makes the steps seen by those who listen and by the failpoints, where
// there are any.
func (s *Service) traced(ctx context.Context, strategy string) context.Context {
	watched, stopping := s.events.watched(), s.failpoints.any()
	if !watched && !stopping {
		return ctx
	}
	tell, stop := s.events.tracer(s.Replica, strategy), s.failpoints.tracer(strategy)
	return locks.WithTracer(ctx, func(ctx context.Context, e api.Event) {
		if watched {
			tell(ctx, e)
		}
		if stopping {
			stop(ctx, e)
		}
	})
}

// ms is d in milliseconds, to the microsecond.
func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
