package handlers

import (
	"errors"
	"net/http"

	"github.com/gin-gonic/gin"

	"oversell/api"
	"oversell/locks"
	"oversell/stock"
)

// outcomes is the one table from error to status. The first that fits counts:
// a loss is often also a cancellation.
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

// describe makes a problem of an error. What the table doesn't know is unknown:
// perhaps taken, perhaps not.
func describe(err error) api.Problem {
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

func (s *Service) problem(c *gin.Context, p api.Problem) {
	p.Replica = s.Replica
	if p.Title == "" {
		p.Title = http.StatusText(p.Status)
	}
	if p.Status == http.StatusServiceUnavailable || p.Status == http.StatusTooManyRequests {
		c.Header("Retry-After", "1")
	}
	c.Header("Content-Type", "application/problem+json")
	c.AbortWithStatusJSON(p.Status, p)
}

func (s *Service) badRequest(c *gin.Context, e *paramError) {
	s.problem(c, api.Problem{
		Status: http.StatusBadRequest, Outcome: api.BadRequest,
		Detail: e.Error(), Parameter: e.name, Allowed: e.allowed,
	})
}
