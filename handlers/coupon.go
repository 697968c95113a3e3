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

var errRunning = errors.New("an earlier request of this user is still running")

var couponGuards = map[string]guard{ //nolint:gochecknoglobals // a table, never written
	"none": {},
	// The lock is released before the commit. The same happens if a @Transactional method locks and
	// unlocks in its body. Tutorial document 001 avoids this with a call through a proxy.
	"redis-early":  {lock: "redis", early: true},
	"redis":        {lock: "redis"},
	"unique":       {once: true},
	"redis-unique": {lock: "redis", once: true}, // correct even when the lock is lost
}

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

// postCouponOrder gives the user one coupon, and only once (tutorial document 001).
func (s *Service) postCouponOrder(c *gin.Context) (any, error) {
	p, id := rowParams(c, "user", "guard", "lease")
	user := p.needed("user", 1, maxID)
	name, guard := choice(p, "guard", "none", couponGuards)
	// The wait is 0: a second request of the same user is rejected at once.
	r := locks.Request{Key: fmt.Sprintf("coupon:%d:user:%d", id, user), Owner: s.newOwner(), Lease: p.lease()}
	if p.err != nil {
		return nil, p.err
	}
	ctx := s.traced(c.Request.Context(), "coupon")
	if err := s.Coupons.Open(ctx, id); err != nil {
		return nil, err
	}
	var order stock.CouponOrder
	warning, err := s.guarded(ctx, guard.lock, r, func(held *heldLock) (err error) {
		order, err = s.takeCoupon(ctx, held, id, user, guard)
		return err
	})
	if errors.Is(err, locks.ErrNotAcquired) && ctx.Err() == nil {
		return nil, fmt.Errorf("coupon %d: %w", id, errRunning)
	}
	if err != nil {
		return nil, err
	}
	c.Status(http.StatusCreated)
	return couponOrder{
		Outcome: api.Ordered, Guard: name, Replica: s.Replica, Coupon: id,
		Order: order.ID, User: user, Made: order.Made(), Warning: warning.In(requestLanguage(c)),
	}, nil
}

func (s *Service) takeCoupon(ctx context.Context, held *heldLock, id, user int64, g guard) (order stock.CouponOrder, err error) {
	if err := s.Coupons.Check(held.lock.Context(), id, user); err != nil {
		return order, err
	}
	held.trace(ctx, api.Read)
	err = held.commit(ctx, g.early, func(committing func() error) (err error) {
		order, err = s.Coupons.Place(ctx, id, user, g.once, committing)
		return err
	})
	return order, err
}

// putCoupon resets a coupon. It does not clear a dead replica's lock, which expires.
func (s *Service) putCoupon(c *gin.Context) (any, error) {
	p, id := rowParams(c, "count", "state")
	count := int(p.needed("count", 0, maxCount))
	const day = 24 * time.Hour
	_, begins := choice(p, "state", "open", map[string]time.Duration{"open": 0, "soon": day, "over": -day})
	if p.err != nil {
		return nil, p.err
	}
	if err := s.Coupons.Reset(c.Request.Context(), id, count, begins, begins+day); err != nil {
		return nil, err
	}
	return s.Coupons.Read(c.Request.Context(), id)
}
