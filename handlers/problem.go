package handlers

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/gin-gonic/gin"

	"oversell/api"
	"oversell/locks"
	"oversell/stock"
)

// outcomes has ErrLost before ErrCancelled: a request that loses its lock is often cancelled, too.
var outcomes = []struct { //nolint:gochecknoglobals // a table, never written
	err     error
	status  int
	outcome api.Outcome
}{
	{stock.ErrUnknownProduct, http.StatusNotFound, api.UnknownProduct},
	{stock.ErrSoldOut, http.StatusConflict, api.SoldOut},
	{stock.ErrFenced, http.StatusConflict, api.Fenced},
	{stock.ErrUnknownCoupon, http.StatusNotFound, api.UnknownCoupon},
	{stock.ErrNotOpen, http.StatusForbidden, api.NotOpen},
	{stock.ErrOver, http.StatusGone, api.Over},
	{stock.ErrAlreadyTaken, http.StatusConflict, api.AlreadyTaken},
	{errRunning, http.StatusTooManyRequests, api.Running},
	{stock.ErrUnknownShow, http.StatusNotFound, api.UnknownShow},
	{stock.ErrUnknownOrder, http.StatusNotFound, api.UnknownOrder},
	{stock.ErrWrongAmount, http.StatusUnprocessableEntity, api.WrongAmount},
	{stock.ErrKeyReused, http.StatusUnprocessableEntity, api.KeyReused},
	{locks.ErrLost, http.StatusServiceUnavailable, api.Lost},
	{stock.ErrUnavailable, http.StatusServiceUnavailable, api.Unavailable},
	{locks.ErrNotAcquired, http.StatusServiceUnavailable, api.NotAcquired},
	{locks.ErrUpgrade, http.StatusConflict, api.Upgrade},
	{locks.ErrFull, http.StatusInsufficientStorage, api.Full},
	{locks.ErrMismatch, http.StatusConflict, api.Mismatch},
	{stock.ErrConflict, http.StatusServiceUnavailable, api.Conflict},
	{stock.ErrCancelled, http.StatusServiceUnavailable, api.Cancelled},
}

type refusal struct{ api.Problem }

func (r *refusal) Error() string { return r.Detail }

func refuse(status int, outcome api.Outcome, format string, args ...any) *refusal {
	return &refusal{api.Problem{Status: status, Outcome: outcome, Detail: fmt.Sprintf(format, args...)}}
}

func badParameter(name, value, allowed string) *refusal {
	r := refuse(http.StatusBadRequest, api.BadRequest, "%s=%s: must be %s", cut(name), short(value), allowed)
	r.Parameter, r.Allowed = cut(name), allowed
	return r
}

// If err is not in outcomes, describe says "unknown": pieces may have been taken from the stock.
func describe(err error) api.Problem {
	if complete := (*refusal)(nil); errors.As(err, &complete) {
		return complete.Problem
	}
	p := api.Problem{Status: http.StatusInternalServerError, Outcome: api.Unknown, Detail: err.Error()}
	for _, o := range outcomes {
		if errors.Is(err, o.err) {
			p.Status, p.Outcome = o.status, o.outcome
			break
		}
	}
	var down *stock.Unavailable
	if errors.As(err, &down) {
		p.Backend = down.Backend
	}
	return p
}

func (s *Service) problem(c *gin.Context, err error) {
	p := describe(err)
	p.Replica = s.Replica
	p.Title = http.StatusText(p.Status)
	if p.Status == http.StatusServiceUnavailable || p.Status == http.StatusTooManyRequests {
		c.Header("Retry-After", "1")
	}
	c.Header("Content-Type", "application/problem+json")
	c.AbortWithStatusJSON(p.Status, p)
}

// written is the result of a function that has already sent the response.
type written struct{}

func (s *Service) answer(work func(*gin.Context) (any, error)) gin.HandlerFunc {
	return func(c *gin.Context) {
		answer, err := work(c)
		if err != nil {
			s.problem(c, err)
			return
		}
		if _, done := answer.(written); !done {
			c.JSON(c.Writer.Status(), answer) // with status 200, unless the function set another
		}
	}
}

func row[T any](s *Service, read func(context.Context, int64) (T, error)) gin.HandlerFunc {
	return s.answer(func(c *gin.Context) (any, error) {
		p, id := rowParams(c)
		if p.err != nil {
			return nil, p.err
		}
		return read(c.Request.Context(), id)
	})
}
