package handlers

import (
	"errors"
	"net/http"

	"github.com/gin-gonic/gin"

	"oversell/locks"
	"oversell/stock"
)

// problem is application/problem+json (RFC 9457), with what a class wants to
// know besides.
type problem struct {
	Title    string  `json:"title"`
	Status   int     `json:"status"`
	Detail   string  `json:"detail"`
	Outcome  string  `json:"outcome"`
	Replica  string  `json:"replica"`
	Strategy string  `json:"strategy,omitempty"`
	Name     string  `json:"name,omitempty"`
	WaitedMS float64 `json:"waited_ms"`
	HeldMS   float64 `json:"held_ms,omitempty"`
	Retries  int     `json:"retries"`
	// Parameter and Allowed explain a 400, Backend a 503. Name
	// and HeldMS belong to a primitive, whose Backend is always told.
	Parameter string `json:"parameter,omitempty"`
	Allowed   string `json:"allowed,omitempty"`
	Backend   string `json:"backend,omitempty"`
}

// outcomes is the one table from error to status. The first that fits counts:
// a loss is often also a cancellation.
var outcomes = []struct { //nolint:gochecknoglobals // a table, never written
	err     error
	status  int
	outcome string
}{
	{stock.ErrUnknownProduct, http.StatusNotFound, "unknown_product"},
	{stock.ErrSoldOut, http.StatusConflict, "sold_out"},
	{stock.ErrFenced, http.StatusConflict, "fenced"},
	{stock.ErrUnknownCoupon, http.StatusNotFound, "unknown_coupon"},
	{stock.ErrNotOpen, http.StatusForbidden, "not_open"},
	{stock.ErrOver, http.StatusGone, "over"},
	{stock.ErrAlreadyTaken, http.StatusConflict, "already_taken"},
	{errRunning, http.StatusTooManyRequests, "running"},
	{stock.ErrUnknownShow, http.StatusNotFound, "unknown_show"},
	{stock.ErrUnknownOrder, http.StatusNotFound, "unknown_order"},
	{stock.ErrWrongAmount, http.StatusUnprocessableEntity, "wrong_amount"},
	{stock.ErrKeyReused, http.StatusUnprocessableEntity, "key_reused"},
	{locks.ErrLost, http.StatusServiceUnavailable, "lost"},
	{stock.ErrUnavailable, http.StatusServiceUnavailable, "unavailable"},
	{locks.ErrNotAcquired, http.StatusServiceUnavailable, "not_acquired"},
	{locks.ErrUpgrade, http.StatusConflict, "upgrade"},
	{locks.ErrFull, http.StatusInsufficientStorage, "full"},
	{locks.ErrMismatch, http.StatusConflict, "mismatch"},
	{stock.ErrConflict, http.StatusServiceUnavailable, "conflict"},
	{stock.ErrCancelled, http.StatusServiceUnavailable, "cancelled"},
}

// describe makes a problem of an error. What the table doesn't know is unknown:
// perhaps taken, perhaps not.
func describe(err error) problem {
	p := problem{Status: http.StatusInternalServerError, Outcome: "unknown", Detail: err.Error()}
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

func (s *Service) problem(c *gin.Context, p problem) {
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
	s.problem(c, problem{
		Status: http.StatusBadRequest, Outcome: "bad_request",
		Detail: e.Error(), Parameter: e.name, Allowed: e.allowed,
	})
}
