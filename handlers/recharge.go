package handlers

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"

	"oversell/api"
	"oversell/locks"
	"oversell/stock"
)

// idempotencyKey names the header in which a client says which of its requests are one.
const idempotencyKey = "Idempotency-Key"

// rechargeGuard keeps an order from being credited twice.
type rechargeGuard struct {
	lock    string // of Config.Lockers, one for each order; empty: none
	early   bool   // released before the commit
	version bool   // writes only what it has read
	key     bool   // wants the header Idempotency-Key
}

var rechargeGuards = map[string]rechargeGuard{ //nolint:gochecknoglobals // a table, never written
	"none": {},
	// As 003 has it: @Transactional around the method that locks and unlocks.
	"redis-early": {lock: "redis", early: true},
	"redis":       {lock: "redis"},
	"version":     {version: true},
	"key":         {key: true},
}

// recharged is the answer to a recharge that was credited: now, or before.
type recharged struct {
	Outcome api.Outcome `json:"outcome"`
	Guard   string      `json:"guard"`
	Replica string      `json:"replica"`
	Order   int64       `json:"order"`
	Amount  int64       `json:"amount"`
	WorkMS  float64     `json:"work_ms"`
	Warning string      `json:"warning,omitempty"`
}

// rechargeRequest is one request to credit an order.
type rechargeRequest struct {
	id, amount int64
	key        string
	guard      rechargeGuard
	work       time.Duration
}

func (s *Service) routeRecharges() {
	s.engine.POST("/orders/:id/recharge", s.postRecharge)
	s.engine.GET("/orders/:id", row(s, s.Recharges.Read)) // and the balance of its account
	s.engine.PUT("/orders/:id", s.labOnly, s.putRecharge)
}

func rechargeKey(id int64) string { return fmt.Sprintf("order:%d", id) }

// postRecharge credits the order's account, once (003).
func (s *Service) postRecharge(c *gin.Context) {
	p, id := rowParams(c, "amount", "guard", "work", "wait", "lease")
	name, guard := choice(p, "guard", "none", rechargeGuards)
	// As 003's: some computing between the check and the update.
	computing := 10*time.Millisecond + rand.N(90*time.Millisecond) //nolint:gosec // not a secret
	w := rechargeRequest{id: id, amount: p.needed("amount", 1, maxID), guard: guard, work: p.duration("work", computing, 0)}
	t := task{key: rechargeKey(id), owner: s.newOwner(), wait: p.duration("wait", defaultWait, 0)}
	if p.values.Has("lease") {
		t.lease = p.duration("lease", 0, minLease)
	}
	if guard.key {
		w.key = p.header(c.Request, idempotencyKey)
	}
	if p.err != nil {
		s.badRequest(c, p.err)
		return
	}
	warning, err := s.recharge(s.traced(c.Request.Context(), "recharge"), w, t)
	outcome := api.Credited
	if errors.Is(err, stock.ErrCredited) {
		outcome, err = api.CreditedBefore, nil // the customer has what he wants
	}
	if err != nil {
		s.problem(c, describe(err))
		return
	}
	c.JSON(http.StatusOK, recharged{outcome, name, s.Replica, id, w.amount, ms(w.work), warning})
}

// recharge checks, works, and credits, all behind the guard's lock.
func (s *Service) recharge(ctx context.Context, w rechargeRequest, t task) (warning string, err error) {
	held, err := s.acquireGuard(ctx, w.guard.lock, t)
	if err != nil {
		return "", err
	}
	defer func() { warning = held.release(ctx) }()
	inside := held.context(ctx)
	if w.key != "" {
		if err := s.Recharges.Replayed(inside, w.key, w.id, w.amount); err != nil {
			return "", err
		}
	}
	order, err := s.Recharges.Due(inside, w.id, w.amount)
	if err != nil {
		return "", err
	}
	t.trace(ctx, api.Read)
	if err := locks.Work(inside, w.work); err != nil {
		return "", err
	}
	return "", held.commit(ctx, w.guard.early, func(committing func() error) error {
		return s.Recharges.Credit(ctx, order, stock.Proof{Version: w.guard.version, Key: w.key}, committing)
	})
}

// putRecharge begins an order anew: ?amount=500, in cents, for the account of its own number,
// which has nothing. No idempotency key is left, and no lock.
func (s *Service) putRecharge(c *gin.Context) {
	p, id := rowParams(c, "amount")
	amount := p.needed("amount", 1, maxID)
	if p.err != nil {
		s.badRequest(c, p.err)
		return
	}
	ctx := c.Request.Context()
	_ = s.forget(ctx, rechargeKey(id)) // its backend may be down: others work
	if err := s.Recharges.Reset(ctx, id, id, amount); err != nil {
		s.problem(c, describe(err))
		return
	}
	answerRow(s, c, id, s.Recharges.Read)
}
