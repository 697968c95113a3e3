package handlers

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"

	"oversell/api"
	"oversell/locks"
	"oversell/stock"
)

// errRunning says that the same customer's earlier request is still under way.
var errRunning = errors.New("your first request is still running")

// couponGuard keeps a user from a second order.
type couponGuard struct {
	lock  string // of Config.Lockers, one for each user and coupon; empty: none
	early bool   // released before the commit
	once  bool   // the database's unique key as well
}

var couponGuards = map[string]couponGuard{ //nolint:gochecknoglobals // a table, never written
	"none": {},
	// Released before the commit, as by a method whose transaction is around the lock
	// (001 goes through a proxy to avoid just that).
	"redis-early":  {lock: "redis", early: true},
	"redis":        {lock: "redis"},
	"unique":       {once: true},
	"redis-unique": {lock: "redis", once: true}, // also when the lock is lost
}

// couponOrder is the answer to who got a coupon.
type couponOrder struct {
	Outcome api.Outcome `json:"outcome"`
	Guard   string      `json:"guard"`
	Replica string      `json:"replica"`
	Coupon  int64       `json:"coupon"`
	Order   int64       `json:"order"`
	User    int64       `json:"user"`
	Made    time.Time   `json:"made"`
	Warning string      `json:"warning,omitempty"`
}

func (s *Service) routeCoupons() {
	s.engine.POST("/coupons/:id/orders", s.postCouponOrder)
	s.engine.GET("/coupons/:id", row(s, s.Coupons.Read))
	s.engine.PUT("/coupons/:id", s.labOnly, s.putCoupon)
	s.engine.GET("/coupons/:id/orders", s.labOnly, row(s, s.Coupons.Orders)) // for whoever judges
}

// postCouponOrder gives the user one of the coupons, once (001).
func (s *Service) postCouponOrder(c *gin.Context) {
	p, id := rowParams(c, "user", "guard", "lease")
	user := p.needed("user", 1, maxID)
	name, guard := choice(p, "guard", "none", couponGuards)
	// No patience: whoever asks twice is told so, and does not queue behind himself.
	t := task{key: fmt.Sprintf("coupon:%d:user:%d", id, user), owner: s.newOwner()}
	if p.values.Has("lease") {
		t.lease = p.duration("lease", 0, minLease)
	}
	if p.err != nil {
		s.badRequest(c, p.err)
		return
	}
	order, warning, err := s.takeCoupon(s.traced(c.Request.Context(), "coupon"), id, user, guard, t)
	if err != nil {
		s.problem(c, describe(err))
		return
	}
	c.JSON(http.StatusCreated, couponOrder{
		Outcome: api.Ordered, Guard: name, Replica: s.Replica, Coupon: id,
		Order: order.ID, User: user, Made: order.Made(), Warning: warning,
	})
}

// takeCoupon checks, places the order and commits it, all behind the guard's lock.
func (s *Service) takeCoupon(ctx context.Context, id, user int64, guard couponGuard, t task) (order stock.CouponOrder, warning string, err error) {
	if err := s.Coupons.Open(ctx, id); err != nil {
		return order, "", err
	}
	held, err := s.acquireGuard(ctx, guard.lock, t)
	if errors.Is(err, locks.ErrNotAcquired) && ctx.Err() == nil {
		return order, "", fmt.Errorf("coupon %d: %w", id, errRunning)
	}
	if err != nil {
		return order, "", err
	}
	defer func() { warning = held.release(ctx) }()
	if err := s.Coupons.Check(held.context(ctx), id, user); err != nil {
		return order, "", err
	}
	t.trace(ctx, api.Read)
	err = held.commit(ctx, guard.early, func(committing func() error) (err error) {
		order, err = s.Coupons.Place(ctx, id, user, guard.once, committing)
		return err
	})
	return order, "", err
}

// putCoupon begins a coupon anew: ?count=100, and &state=open, soon or over. A lock that a
// dead replica left of one of its users runs out with its lease.
func (s *Service) putCoupon(c *gin.Context) {
	p, id := rowParams(c, "count", "state")
	count, state := int(p.needed("count", 0, maxCount)), p.text("state", "open")
	const day = 24 * time.Hour
	begins, ends := time.Duration(0), day
	switch state {
	case "open":
	case "soon":
		begins, ends = day, 2*day
	case "over":
		begins, ends = -day, 0
	default:
		p.fail("state", state, "open, soon or over")
	}
	if p.err != nil {
		s.badRequest(c, p.err)
		return
	}
	if err := s.Coupons.Reset(c.Request.Context(), id, count, begins, ends); err != nil {
		s.problem(c, describe(err))
		return
	}
	answerRow(s, c, id, s.Coupons.Read)
}
