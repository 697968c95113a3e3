package handlers

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"

	"oversell/locks"
	"oversell/stock"
)

// The guards that are no lock. The others are lockers, by the id of their card.
const (
	// unguarded reads the number, and sells it: two windows sell the same one.
	unguarded = "none"
	// decrement lets the database count down, which is exact, and asks it afterwards for
	// the number, which by then may be another's.
	decrement = "decrement"
	// uniqueKey lets the table refuse a number that was sold, and then looks again.
	uniqueKey = "unique-key"
)

func (s *Service) routeTickets() {
	s.engine.POST("/shows/:id/tickets", s.sellTicket)
	s.engine.GET("/shows/:id", s.getShow)
	s.engine.PUT("/shows/:id", s.labOnly, s.putShow)
}

func showKey(show int64) string { return fmt.Sprintf("show:%d", show) }

// soldTicket is the answer to a window.
type soldTicket struct {
	Outcome  string  `json:"outcome"`
	Replica  string  `json:"replica"`
	Guard    string  `json:"guard"`
	Show     int64   `json:"show"`
	Number   int     `json:"number"`
	Window   string  `json:"window"`
	WaitedMS float64 `json:"waited_ms"`
	Retries  int     `json:"retries"`
	Warning  string  `json:"warning,omitempty"`
}

// sale is one window's wish for a ticket.
type sale struct {
	show          int64
	guard, window string
	owner         string
	wait          time.Duration
	waited        time.Duration
	retries       int
	warning       string
}

// sellTicket sells the next number at a window (tutorial document 002).
func (s *Service) sellTicket(c *gin.Context) {
	show, bad := productID(c)
	p := newParams(c.Request, []string{"guard", "window", "wait"})
	want := sale{
		show: show, guard: s.guard(p, unguarded, decrement, uniqueKey), window: p.word("window", s.Replica),
		wait: p.duration("wait", defaultWait, 0), owner: s.newOwner(),
	}
	if bad == nil {
		bad = p.err
	}
	if bad != nil {
		s.badRequest(c, bad)
		return
	}
	number, err := s.sell(s.traced(c.Request.Context(), "tickets"), &want)
	if err != nil {
		refusal := describe(err)
		refusal.WaitedMS, refusal.Retries = ms(want.waited), want.retries
		s.problem(c, refusal)
		return
	}
	c.JSON(http.StatusOK, soldTicket{
		Outcome: "sold", Replica: s.Replica, Guard: want.guard, Show: show, Number: number, Window: want.window,
		WaitedMS: ms(want.waited), Retries: want.retries, Warning: want.warning,
	})
}

// sell chooses the guard.
func (s *Service) sell(ctx context.Context, want *sale) (number int, err error) {
	switch want.guard {
	case unguarded:
		return s.sellNext(ctx, want, nil, s.Tickets.Sell)
	case decrement:
		return s.takeAndAsk(ctx, want)
	case uniqueKey:
		return s.sellOnce(ctx, want)
	}
	asked := time.Now()
	request := locks.Request{Key: showKey(want.show), Owner: want.owner, Wait: want.wait}
	want.warning, err = underLock(ctx, s.Lockers[want.guard], request, func(hold *locks.Hold) error {
		want.waited = time.Since(asked)
		number, err = s.sellNext(hold.Context(), want, hold, s.Tickets.Sell)
		return err
	})
	return number, err
}

// sellNext reads the number and sells it. Between the two a rival may do the same, unless
// a hold keeps it out.
func (s *Service) sellNext(ctx context.Context, want *sale, hold *locks.Hold, sell func(context.Context, int64, stock.Ticket) error) (int, error) {
	key := showKey(want.show)
	show, err := s.Tickets.Read(ctx, want.show)
	if err != nil {
		return 0, err
	}
	locks.Trace(ctx, locks.Read, key, want.owner, 0)
	if show.Next < 1 {
		return 0, stock.ErrSoldOut
	}
	if err := trusted(hold); err != nil {
		return 0, err
	}
	locks.Trace(ctx, locks.Writing, key, want.owner, 0)
	if err := sell(ctx, want.show, stock.Ticket{Number: show.Next, Window: want.window}); err != nil {
		return 0, err
	}
	locks.Trace(ctx, locks.Written, key, want.owner, 0)
	return show.Next, nil
}

// takeAndAsk counts right, and still sells one number twice and another never: between
// its UPDATE and its SELECT another window may count down as well.
func (s *Service) takeAndAsk(ctx context.Context, want *sale) (int, error) {
	key := showKey(want.show)
	if err := s.Tickets.Take(ctx, want.show); err != nil {
		return 0, err
	}
	locks.Trace(ctx, locks.Read, key, want.owner, 0)
	show, err := s.Tickets.Read(ctx, want.show)
	if err != nil {
		return 0, fmt.Errorf("a ticket was taken, and which one is not known: %v", err) //nolint:errorlint // not "nothing was taken"
	}
	locks.Trace(ctx, locks.Writing, key, want.owner, 0)
	sold := stock.Ticket{Number: show.Next + 1, Window: want.window}
	if err := s.Tickets.Hand(ctx, want.show, sold); err != nil {
		return 0, err
	}
	locks.Trace(ctx, locks.Written, key, want.owner, 0)
	return sold.Number, nil
}

// sellOnce asks nobody for leave: of all who sell the same number the table lets one, and
// the others look again.
func (s *Service) sellOnce(ctx context.Context, want *sale) (int, error) {
	for began := time.Now(); ; want.retries++ {
		number, err := s.sellNext(ctx, want, nil, s.Tickets.SellOnce)
		if !errors.Is(err, stock.ErrTaken) && !errors.Is(err, stock.ErrConflict) {
			return number, err
		}
		if time.Since(began) > want.wait {
			return 0, fmt.Errorf("%w: %w", stock.ErrConflict, err)
		}
	}
}

// getShow is what the tables hold: the next number, and every ticket sold.
func (s *Service) getShow(c *gin.Context) {
	id, bad := productID(c)
	if bad != nil {
		s.badRequest(c, bad)
		return
	}
	s.answerShow(c, id, nil)
}

// putShow prints the tickets anew and forgets who held the show.
func (s *Service) putShow(c *gin.Context) {
	id, bad := productID(c)
	if bad != nil {
		s.badRequest(c, bad)
		return
	}
	p := newParams(c.Request, []string{"tickets"})
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

func (s *Service) answerShow(c *gin.Context, id int64, warnings []string) {
	show, err := s.Tickets.Read(c.Request.Context(), id)
	if err != nil {
		s.problem(c, describe(err))
		return
	}
	sold, err := s.Tickets.Sold(c.Request.Context(), id)
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
