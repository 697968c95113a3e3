package handlers

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gin-gonic/gin"

	"oversell/api"
	"oversell/locks"
	"oversell/stock"
)

var ticketGuards = map[string]guard{ //nolint:gochecknoglobals // a table, never written
	"none":      {},
	"decrement": {count: true},
	"mutex":     {lock: "mutex"}, // useless: each window is a process with a mutex of its own
	"redis":     {lock: "redis"},
	"unique":    {once: true},
}

type ticketSale struct {
	show    int64
	window  string
	wait    time.Duration
	waited  time.Duration
	retries int
}

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

func showKey(show int64) string { return fmt.Sprintf("show:%d", show) }

// postTicket sells the next ticket number of a show at one ticket window (tutorial document 002).
func (s *Service) postTicket(c *gin.Context) (any, error) {
	p, show := rowParams(c, "guard", "window", "wait")
	name, guard := choice(p, "guard", "none", ticketGuards)
	w := ticketSale{show: show, window: p.word("window", s.Replica), wait: p.duration("wait", defaultWait, 0)}
	if p.err != nil {
		return nil, p.err
	}
	ctx := s.traced(c.Request.Context(), "tickets")
	r := locks.Request{Key: showKey(show), Owner: s.newOwner(), Wait: w.wait}
	asked, number, granted := time.Now(), 0, false
	warning, err := s.guarded(ctx, guard.lock, r, func(held *heldLock) (err error) {
		w.waited, granted = time.Since(asked), true
		switch {
		case guard.count:
			number, err = s.countDownAndRead(ctx, held, &w)
		case guard.once:
			number, err = s.sellOnce(ctx, held, &w)
		default:
			number, err = s.sellNext(ctx, held, &w, s.Tickets.Sell)
		}
		return err
	})
	if err != nil {
		if !granted {
			w.waited = time.Since(asked)
		}
		p := s.describe(err)
		p.WaitedMS, p.Retries = ms(w.waited), w.retries
		return nil, p
	}
	return soldTicket{
		Outcome: api.Sold, Guard: name, Replica: s.Replica, Show: show, Number: number, Window: w.window,
		WaitedMS: ms(w.waited), Retries: w.retries, Warning: warning.In(requestLanguage(c)),
	}, nil
}

// sellNext needs a lock or a unique key: another window may sell the same number after its read.
func (s *Service) sellNext(ctx context.Context, held *heldLock, w *ticketSale, sell func(context.Context, int64, stock.Ticket, func() error) error) (int, error) {
	show, err := s.Tickets.Read(held.lock.Context(), w.show)
	if err != nil {
		return 0, err
	}
	held.trace(ctx, api.Read)
	if show.Next < 1 {
		return 0, stock.ErrSoldOut
	}
	if err := held.verify(); err != nil {
		return 0, err
	}
	held.trace(ctx, api.Writing)
	if err := sell(ctx, w.show, stock.Ticket{Number: show.Next, Window: w.window}, held.verify); err != nil {
		return 0, err
	}
	held.trace(ctx, api.Written)
	return show.Next, nil
}

// countDownAndRead sells the right number of tickets, but some numbers twice and others never:
// between its UPDATE and its SELECT, another window may lower the next number.
func (s *Service) countDownAndRead(ctx context.Context, held *heldLock, w *ticketSale) (int, error) {
	if err := s.Tickets.Take(ctx, w.show); err != nil {
		return 0, err
	}
	held.trace(ctx, api.Read)
	// A ticket was taken, so the errors below must not wrap a cause with the outcome "unavailable".
	show, err := s.Tickets.Read(context.WithoutCancel(ctx), w.show)
	if err != nil {
		return 0, fmt.Errorf("a ticket was taken, but its number could not be read: %v", err) //nolint:errorlint // see above
	}
	sold := stock.Ticket{Number: show.Next + 1, Window: w.window}
	held.trace(ctx, api.Writing)
	if err := s.Tickets.Hand(ctx, w.show, sold); err != nil {
		return 0, fmt.Errorf("ticket %d was taken, but it is unknown whether it was recorded as sold: %v", sold.Number, err) //nolint:errorlint // see above
	}
	held.trace(ctx, api.Written)
	return sold.Number, nil
}

// sellOnce needs no lock: if the table rejects a sold number, sellOnce tries the next number.
func (s *Service) sellOnce(ctx context.Context, held *heldLock, w *ticketSale) (int, error) {
	for began := time.Now(); ; w.retries++ {
		number, err := s.sellNext(ctx, held, w, s.Tickets.SellOnce)
		if !errors.Is(err, stock.ErrTicketSold) && !errors.Is(err, stock.ErrConflict) {
			return number, err
		}
		if time.Since(began) >= w.wait {
			return 0, fmt.Errorf("every attempt failed (%d in %v): %w: %w", w.retries+1, w.wait, stock.ErrConflict, err)
		}
	}
}

type showAnswer struct {
	stock.Show
	Sold     []stock.Ticket `json:"sold"`
	Warnings []string       `json:"warnings,omitempty"`
}

func (s *Service) show(ctx context.Context, id int64) (a showAnswer, err error) {
	if a.Show, err = s.Tickets.Read(ctx, id); err == nil {
		a.Sold, err = s.Tickets.Sold(ctx, id)
	}
	return a, err
}

// putShow resets a show and clears its locks. The answer has a warning if a lock's backend is down.
func (s *Service) putShow(c *gin.Context) (any, error) {
	p, id := rowParams(c, "tickets")
	tickets := int(p.needed("tickets", 0, maxCount))
	if p.err != nil {
		return nil, p.err
	}
	ctx := c.Request.Context()
	forgotten := s.forget(ctx, showKey(id))
	if err := s.Tickets.Reset(ctx, id, tickets); err != nil {
		return nil, err
	}
	answer, err := s.show(ctx, id)
	if forgotten != nil {
		answer.Warnings = []string{forgotten.Error()}
	}
	return answer, err
}
