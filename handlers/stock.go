package handlers

import (
	"context"
	"crypto/subtle"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/gin-gonic/gin"

	"oversell/api"
	"oversell/locks"
	"oversell/stock"
)

// getStock reads the row; with ?strategy= of one that keeps the stock
// elsewhere, the count is what is left there.
func (s *Service) getStock(c *gin.Context) {
	p, id := rowParams(c, "strategy")
	strategy := s.strategy(p, "none")
	if p.err != nil {
		s.badRequest(c, p.err)
		return
	}
	ctx := c.Request.Context()
	item, err := s.Ledger.Read(ctx, id)
	if keeper, ok := strategy.(locks.StockHolder); ok && err == nil {
		item.Count, err = keeper.Count(ctx, id)
	}
	if err != nil {
		s.problem(c, describe(err))
		return
	}
	c.JSON(http.StatusOK, struct {
		stock.Item
		Flushes *int64 `json:"flushes,omitempty"`
	}{item, s.flushes(ctx, strategy.Card())})
}

// flushes counts the FLUSHALL and FLUSHDB that the servers of a strategy executed: they delete
// locks under their holders, so a lab that sees the number rise must not blame the lock. nil: the
// strategy uses no Redis, or not every server answers.
func (s *Service) flushes(ctx context.Context, card api.Card) (sum *int64) {
	for _, backend := range s.Backends {
		if backend.Flushes == nil || !slices.Contains(card.Backends, backend.Name) {
			continue
		}
		n, err := backend.Flushes(ctx)
		if err != nil {
			return nil
		}
		sum = &n
	}
	return sum
}

// putStock begins a class anew: ?count=5000 or {"count":5000}, no version, no fence, no
// lock left behind; with new=true also for a product that was not there. A backend that is
// down can't be cleared; that is a warning, for the strategies of the others work.
func (s *Service) putStock(c *gin.Context) {
	p, id := rowParams(c, "count", "new")
	count, fresh := int(p.needed("count", 0, maxCount)), p.boolean("new")
	if p.err != nil {
		s.badRequest(c, p.err)
		return
	}
	ctx := c.Request.Context()
	if fresh {
		if err := s.Resets.Add(ctx, id); err != nil {
			s.problem(c, describe(err))
			return
		}
	}
	warnings := s.clear(ctx, api.Key(id))
	if err := s.Resets.Reset(ctx, id, count); err != nil {
		s.problem(c, describe(err))
		return
	}
	item, err := s.Resets.ReadPrimary(ctx, id)
	if err != nil {
		s.problem(c, describe(err))
		return
	}
	c.JSON(http.StatusOK, struct {
		stock.Item
		Warnings []string `json:"warnings"`
	}{item, warnings})
}

// clear asks every strategy at once to forget the key, and every backend to
// forget its primitives.
func (s *Service) clear(ctx context.Context, key string) []string {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	failures := make(chan string, 1+len(s.Strategies)+len(s.Primitives))
	asked := 0
	ask := func(who string, forget func(context.Context) error) {
		asked++
		go func() {
			if err := forget(ctx); err != nil {
				failures <- fmt.Sprintf("%s: %v", who, err)
				return
			}
			failures <- ""
		}()
	}
	ask("goods", func(ctx context.Context) error { return s.forget(ctx, allGoods) })
	for _, strategy := range s.Strategies {
		if cleaner, ok := strategy.(locks.Cleaner); ok {
			ask(strategy.Card().ID, func(ctx context.Context) error { return cleaner.Clear(ctx, key) })
		}
	}
	for _, p := range s.Primitives {
		if p.Clear != nil {
			ask(p.Backend+" primitives", p.Clear)
		}
	}
	warnings := []string{}
	for range asked {
		if failure := <-failures; failure != "" {
			warnings = append(warnings, failure)
		}
	}
	return warnings
}

// labOnly lets pass who has the lab's token. The token travels in a header of
// its own, which no form or image of another site can send.
func (s *Service) labOnly(c *gin.Context) {
	switch {
	case !s.Lab:
		s.problem(c, api.Problem{Status: http.StatusForbidden, Outcome: api.Forbidden, Detail: "this replica runs without --lab: its stock can't be set"})
	case !s.hasToken(c):
		s.problem(c, api.Problem{Status: http.StatusForbidden, Outcome: api.Forbidden, Detail: "setting the stock needs the lab's token in the header X-Lab-Token (LAB_TOKEN, printed when the lab starts)"})
	}
}

func (s *Service) hasToken(c *gin.Context) bool {
	given := c.GetHeader(api.TokenHeader)
	return s.Token != "" && subtle.ConstantTimeCompare([]byte(given), []byte(s.Token)) == 1
}
