package handlers

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/gin-gonic/gin"

	"oversell/api"
	"oversell/locks"
	"oversell/stock"
)

// idempotencyKey is the name of a header. Repetitions of a request send the same value in it.
const idempotencyKey = "Idempotency-Key"

var rechargeGuards = map[string]guard{ //nolint:gochecknoglobals // a table, never written
	"none": {},
	// The lock is released before the commit, as in a @Transactional method of tutorial document 003.
	"redis-early": {lock: "redis", early: true},
	"redis":       {lock: "redis"},
	"version":     {version: true},
	"key":         {key: true},
}

type recharged struct {
	Outcome api.Outcome `json:"outcome"`
	Guard   string      `json:"guard"`
	Replica string      `json:"replica"`
	Order   int64       `json:"order"`
	Amount  int64       `json:"amount"`
	WorkMS  float64     `json:"work_ms"`
	Warning string      `json:"warning,omitempty"`
}

type rechargeRequest struct {
	id, amount int64
	key        string
	guard      guard
	work       time.Duration
}

func rechargeKey(id int64) string { return fmt.Sprintf("order:%d", id) }

// postRecharge credits an order's amount to its account, and only once (tutorial document 003).
func (s *Service) postRecharge(c *gin.Context) (any, error) {
	p, id := rowParams(c, "amount", "guard", "work", "wait", "lease")
	name, guard := choice(p, "guard", "none", rechargeGuards)
	// Document 003 simulates a computation of random length between the check and the update.
	computing := 10*time.Millisecond + rand.N(90*time.Millisecond) //nolint:gosec // not a secret
	w := rechargeRequest{id: id, amount: p.needed("amount", 1, maxID), guard: guard, work: p.duration("work", computing, 0)}
	r := locks.Request{Key: rechargeKey(id), Owner: s.newOwner(), Wait: p.duration("wait", defaultWait, 0), Lease: p.lease()}
	if guard.key {
		w.key = p.header(c.Request, idempotencyKey)
	}
	if p.err != nil {
		return nil, p.err
	}
	ctx := s.traced(c.Request.Context(), "recharge")
	warning, err := s.guarded(ctx, guard.lock, r, func(held *heldLock) error { return s.recharge(ctx, held, w) })
	outcome := api.Credited
	if errors.Is(err, stock.ErrCredited) {
		outcome, err = api.CreditedBefore, nil // no error: the account already has the money
	}
	if err != nil {
		return nil, err
	}
	return recharged{outcome, name, s.Replica, id, w.amount, ms(w.work), warning.In(requestLanguage(c))}, nil
}

func (s *Service) recharge(ctx context.Context, held *heldLock, w rechargeRequest) error {
	inside := held.lock.Context()
	if w.key != "" {
		if err := s.Recharges.Replayed(inside, w.key, w.id, w.amount); err != nil {
			return err
		}
	}
	order, err := s.Recharges.Due(inside, w.id, w.amount)
	if err != nil {
		return err
	}
	held.trace(ctx, api.Read)
	if err := locks.Work(inside, w.work); err != nil {
		return err
	}
	return held.commit(ctx, w.guard.early, func(committing func() error) error {
		return s.Recharges.Credit(ctx, order, stock.Proof{Version: w.guard.version, Key: w.key}, committing)
	})
}

// putRecharge resets the order and the account's balance, and deletes locks and idempotency keys.
func (s *Service) putRecharge(c *gin.Context) (any, error) {
	p, id := rowParams(c, "amount")
	amount := p.needed("amount", 1, maxID)
	if p.err != nil {
		return nil, p.err
	}
	ctx := c.Request.Context()
	_ = s.forget(ctx, rechargeKey(id)) // ignored: without the lock's backend, other guards work
	if err := s.Recharges.Reset(ctx, id, id, amount); err != nil {
		return nil, err
	}
	return s.Recharges.Read(ctx, id)
}
