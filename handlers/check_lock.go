package handlers

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/gin-gonic/gin"

	"oversell/api"
	"oversell/locks"
	"oversell/stock"
)

// checkLock serves /check/lock, the tutorial's route, which sells an item under a lock.
func (s *Service) checkLock(c *gin.Context) (any, error) {
	strategy, order, err := s.order(c.Request)
	if err != nil {
		return nil, err
	}
	card, receipt := strategy.Card(), stock.Receipt{}
	s.checks.selling.Add(1)
	defer s.checks.selling.Add(-1)
	// An empty Stock means that the strategy sells from MySQL: only then the product is looked up there. A strategy with
	// its stock elsewhere must also sell while MySQL is down.
	if card.Stock == "" {
		err = s.has(c.Request.Context(), order.Product)
	}
	if err == nil {
		err = locks.Work(c.Request.Context(), order.Outside)
	}
	if err == nil {
		var tries atomic.Int64
		watch := stock.Watch{
			Step: s.steps(card.ID), Lock: s.lockEvents(card.ID, &tries),
			Commands: s.failpoints.record(card.ID, api.Key(order.Product), order.Owner),
		}
		end := addSpans(c.Request.Context(), card.ID, &watch)
		receipt, err = strategy.Deduct(stock.WithWatch(c.Request.Context(), watch), order)
		end()
		receipt.Retries = max(receipt.Retries, int(tries.Load()))
	}
	lang, warning := requestLanguage(c), api.Text{}
	if s.checks.mayCheck() {
		warning = s.stockWarning(c.Request.Context(), card.ID, order.Product)
	}
	if err != nil {
		p := s.describe(err)
		p.Strategy, p.Owner, p.WaitedMS, p.Retries, p.Warning = card.ID, order.Owner, ms(receipt.Waited), receipt.Retries, warning.In(lang)
		s.metrics.observe(card, p.Outcome, receipt)
		describeSale(c.Request.Context(), card.ID, p.Outcome, receipt)
		return nil, p
	}
	s.metrics.observe(card, api.Sold, receipt)
	describeSale(c.Request.Context(), card.ID, api.Sold, receipt)
	if receipt.Warning == (api.Text{}) {
		receipt.Warning = warning
	}
	return s.sale(card.ID, order, receipt, lang), nil
}

// maxKnown limits how many existing products a replica remembers. It looks up others at each sale.
const maxKnown = 10_000

// has fails for an unknown product. Call has before the lock is acquired: such a lock would leave
// data in the backend for ever. Products are never deleted, so a replica remembers existing ones.
func (s *Service) has(ctx context.Context, product int64) error {
	if _, known := s.known.Load(product); known || s.Exists == nil {
		return nil
	}
	if err := s.Exists(ctx, product); err != nil {
		return err
	}
	if s.knownCount.Add(1) <= maxKnown {
		s.known.Store(product, true)
	}
	return nil
}

func (s *Service) sale(strategy string, o stock.Order, r stock.Receipt, lang string) api.Sale {
	remaining := &r.Remaining
	if r.Remaining == stock.Uncounted {
		remaining = nil
	}
	return api.Sale{
		Outcome: api.Sold, Strategy: strategy, Replica: s.Replica, Owner: o.Owner, Product: o.Product, Qty: o.Qty,
		Remaining: remaining, Fence: r.Fence, WaitedMS: ms(r.Waited), HeldMS: ms(r.Held), PooledMS: ms(r.Pooled),
		Retries: r.Retries, Warning: r.Warning.In(lang),
	}
}

// lockEvents returns the function that counts what happens to a lock of the strategy, and how often its request tries
// again.
func (s *Service) lockEvents(strategy string, tries *atomic.Int64) func(stock.LockEvent, error) {
	return func(what stock.LockEvent, err error) {
		if what == stock.LockRetried {
			tries.Add(1)
		}
		s.metrics.count(strategy, what, err)
	}
}

// steps returns the function that receives the steps of a request, or nil if neither a listener of /events nor a
// failpoint needs them.
func (s *Service) steps(strategy string) func(context.Context, api.Event) {
	watched, armed := s.events.watched(), s.failpoints.any()
	if !watched && !armed {
		return nil
	}
	return func(_ context.Context, e api.Event) {
		if watched {
			s.events.send(api.StepEvent{Replica: s.Replica, Strategy: strategy, Event: e})
		}
		if armed {
			s.failpoints.stop(strategy, e)
		}
	}
}

// traced adds the steps to ctx.
func (s *Service) traced(ctx context.Context, strategy string) context.Context {
	if step := s.steps(strategy); step != nil {
		return locks.WithTracer(ctx, step)
	}
	return ctx
}

// ms returns d in milliseconds, rounded down to a microsecond.
func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
