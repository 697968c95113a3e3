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

// ticketGuard keeps two windows from selling one number.
type ticketGuard struct {
	lock  string // of Config.Lockers, one for the show; empty: none
	count bool   // the database counts down, and is asked for the number afterwards
	once  bool   // the database's unique key refuses a number that was sold
}

var ticketGuards = map[string]ticketGuard{ //nolint:gochecknoglobals // a table, never written
	"none":      {},
	"decrement": {count: true},
	"mutex":     {lock: "mutex"}, // the windows are processes: each has one of its own
	"redis":     {lock: "redis"},
	"unique":    {once: true},
}

// sale is one window's request for a ticket, and its result.
type sale struct {
	task
	show    int64
	window  string
	waited  time.Duration
	retries int
}

// soldTicket is the answer to a window.
type soldTicket struct {
	Outcome  api.Outcome `json:"outcome"`
	Guard    string      `json:"guard"`
	Replica  string      `json:"replica"`
	Show     int64       `json:"show"`
	Number   int         `json:"number"`
	Window   string      `json:"window"`
	WaitedMS float64     `json:"waited_ms"`
	Retries  int         `json:"retries"`
	Warning  string      `json:"warning,omitempty"`
}

func (s *Service) routeTickets() {
	s.engine.POST("/shows/:id/tickets", s.postTicket)
	s.engine.GET("/shows/:id", s.getShow)
	s.engine.PUT("/shows/:id", s.labOnly, s.putShow)
}

func showKey(show int64) string { return fmt.Sprintf("show:%d", show) }

// postTicket sells the next number at a window (tutorial document 002).
func (s *Service) postTicket(c *gin.Context) {
	p, show := rowParams(c, "guard", "window", "wait")
	name, guard := choice(p, "guard", "none", ticketGuards)
	window := p.word("window", s.Replica)
	t := task{key: showKey(show), owner: s.newOwner(), wait: p.duration("wait", defaultWait, 0)}
	if p.err != nil {
		s.badRequest(c, p.err)
		return
	}
	w := sale{task: t, show: show, window: window}
	number, warning, err := s.sellTicket(s.traced(c.Request.Context(), "tickets"), guard, &w)
	if err != nil {
		refusal := describe(err)
		refusal.WaitedMS, refusal.Retries = ms(w.waited), w.retries
		s.problem(c, refusal)
		return
	}
	c.JSON(http.StatusOK, soldTicket{
		Outcome: api.Sold, Guard: name, Replica: s.Replica, Show: show, Number: number, Window: window,
		WaitedMS: ms(w.waited), Retries: w.retries, Warning: warning,
	})
}

// sellTicket sells behind the guard's lock, which it gives back after the commit.
func (s *Service) sellTicket(ctx context.Context, guard ticketGuard, w *sale) (number int, warning string, err error) {
	asked := time.Now()
	held, err := s.acquireGuard(ctx, guard.lock, w.task)
	w.waited = time.Since(asked)
	if err != nil {
		return 0, "", err
	}
	defer func() { warning = held.release(ctx) }()
	switch {
	case guard.count:
		number, err = s.takeAndAsk(ctx, w)
	case guard.once:
		number, err = s.sellOnce(ctx, held, w)
	default:
		number, err = s.sellNext(ctx, held, w, s.Tickets.Sell)
	}
	return number, "", err
}

// sellNext reads the number and sells it. Between the two a rival may do the same, unless
// the lock keeps it out.
func (s *Service) sellNext(ctx context.Context, held *heldLock, w *sale, sell func(context.Context, int64, stock.Ticket, func() error) error) (int, error) {
	show, err := s.Tickets.Read(held.context(ctx), w.show)
	if err != nil {
		return 0, err
	}
	w.trace(ctx, api.Read)
	if show.Next < 1 {
		return 0, stock.ErrSoldOut
	}
	if err := held.verify(); err != nil {
		return 0, err
	}
	w.trace(ctx, api.Writing)
	if err := sell(ctx, w.show, stock.Ticket{Number: show.Next, Window: w.window}, held.verify); err != nil {
		return 0, err
	}
	w.trace(ctx, api.Written)
	return show.Next, nil
}

// takeAndAsk counts right, and still sells one number twice and another never: between
// its UPDATE and its SELECT another window may count down as well.
func (s *Service) takeAndAsk(ctx context.Context, w *sale) (int, error) {
	if err := s.Tickets.Take(ctx, w.show); err != nil {
		return 0, err
	}
	w.trace(ctx, api.Read)
	show, err := s.Tickets.Read(context.WithoutCancel(ctx), w.show)
	if err != nil {
		return 0, fmt.Errorf("a ticket was taken, and which one is not known: %v", err) //nolint:errorlint // it is not "nothing was taken"
	}
	sold := stock.Ticket{Number: show.Next + 1, Window: w.window}
	w.trace(ctx, api.Writing)
	if err := s.Tickets.Hand(ctx, w.show, sold); err != nil {
		return 0, fmt.Errorf("ticket %d was taken, and perhaps not noted: %v", sold.Number, err) //nolint:errorlint // as above
	}
	w.trace(ctx, api.Written)
	return sold.Number, nil
}

// sellOnce asks nobody for leave: of all who sell the same number the table lets one, and
// the others look again.
func (s *Service) sellOnce(ctx context.Context, held *heldLock, w *sale) (int, error) {
	for began := time.Now(); ; w.retries++ {
		number, err := s.sellNext(ctx, held, w, s.Tickets.SellOnce)
		if !errors.Is(err, stock.ErrTicketSold) && !errors.Is(err, stock.ErrConflict) {
			return number, err
		}
		if time.Since(began) >= w.wait {
			return 0, fmt.Errorf("%d attempts in %v: %w: %w", w.retries+1, w.wait, stock.ErrConflict, err)
		}
	}
}

// getShow is what the tables hold: the next number, and every ticket sold.
func (s *Service) getShow(c *gin.Context) {
	p, id := rowParams(c)
	if p.err != nil {
		s.badRequest(c, p.err)
		return
	}
	s.answerShow(c, id, nil)
}

func (s *Service) answerShow(c *gin.Context, id int64, warnings []string) {
	ctx := c.Request.Context()
	show, err := s.Tickets.Read(ctx, id)
	var sold []stock.Ticket
	if err == nil {
		sold, err = s.Tickets.Sold(ctx, id)
	}
	if err != nil {
		s.problem(c, describe(err))
		return
	}
	c.JSON(http.StatusOK, struct {
		stock.Show
		Sold     []stock.Ticket `json:"sold"`
		Warnings []string       `json:"warnings,omitempty"`
	}{show, sold, warnings})
}

// putShow prints the tickets anew: ?tickets=1000. A lock that a dead window left is cleared,
// so that the next class does not wait for its lease; a backend that is down is a warning.
func (s *Service) putShow(c *gin.Context) {
	p, id := rowParams(c, "tickets")
	tickets := int(p.needed("tickets", 0, maxCount))
	if p.err != nil {
		s.badRequest(c, p.err)
		return
	}
	ctx := c.Request.Context()
	var warnings []string
	if err := s.forget(ctx, showKey(id)); err != nil {
		warnings = append(warnings, err.Error())
	}
	if err := s.Tickets.Reset(ctx, id, tickets); err != nil {
		s.problem(c, describe(err))
		return
	}
	s.answerShow(c, id, warnings)
}

// forget clears what the lockers left behind for the key.
func (s *Service) forget(ctx context.Context, key string) error {
	var failed []error
	for id, l := range s.Lockers {
		if cleaner, ok := l.(locks.Cleaner); ok {
			if err := cleaner.Clear(ctx, key); err != nil {
				failed = append(failed, fmt.Errorf("%s: %w", id, err))
			}
		}
	}
	return errors.Join(failed...)
}
