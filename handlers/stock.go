package handlers

import (
	"context"
	"crypto/subtle"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/gin-gonic/gin"
	"gorm.io/gorm"

	"oversell/api"
	"oversell/locks"
	"oversell/stock"
)

// getStock reads the count from the backend in which the strategy keeps the stock.
func (s *Service) getStock(c *gin.Context) (any, error) {
	p, id := rowParams(c, "strategy")
	strategy := s.strategy(p, "none")
	if p.err != nil {
		return nil, p.err
	}
	ctx := c.Request.Context()
	item, err := s.Ledger.Read(ctx, id)
	if holder, ok := strategy.(locks.StockHolder); ok && err == nil {
		item.Count, err = holder.Count(ctx, id)
	}
	if err != nil {
		return nil, err
	}
	return struct {
		stock.Item
		Flushes *int64 `json:"flushes,omitempty"`
	}{item, s.flushes(ctx, strategy.Card())}, nil
}

// flushes counts FLUSHALL and FLUSHDB. Both commands delete held locks, so a lab must not blame the
// strategy for a later failure. nil means that there is no Redis or no answer.
func (s *Service) flushes(ctx context.Context, card api.Card) *int64 {
	for _, backend := range s.Backends {
		if backend.Flushes == nil || !slices.Contains(card.Backends, backend.Name) {
			continue
		}
		if n, err := backend.Flushes(ctx); err == nil {
			return &n
		}
	}
	return nil
}

// putStock deletes the locks, then sets the row, and then deletes the copies of the count outside MySQL: so no
// sale that began before writes after it (see locks.Guard). It only warns of a backend that is down, because
// strategies of the other backends still work.
func (s *Service) putStock(c *gin.Context) (any, error) {
	p, id := rowParams(c, "count", "new")
	count, fresh := int(p.needed("count", 0, maxCount)), p.boolean("new")
	if p.err != nil {
		return nil, p.err
	}
	ctx := c.Request.Context()
	if fresh {
		if err := s.Resets.Add(ctx, id); err != nil {
			return nil, err
		}
	}
	warnings := s.clear(ctx, api.Key(id))
	copies := map[string]func(context.Context) error{}
	var restock []func(*gorm.DB) error
	for _, strategy := range s.Strategies {
		if holder, ok := strategy.(locks.StockHolder); ok {
			restock = append(restock, func(tx *gorm.DB) error { return holder.Restock(tx, id) })
			if cleaner, ok := strategy.(locks.Cleaner); ok {
				copies[strategy.Card().ID] = func(ctx context.Context) error { return cleaner.Clear(ctx, api.Key(id)) }
			}
		}
	}
	if err := s.Resets.Reset(ctx, id, count, restock...); err != nil {
		return nil, err
	}
	warnings = append(warnings, warningsOf(ctx, copies)...)
	item, err := s.Resets.ReadPrimary(ctx, id)
	return struct {
		stock.Item
		Warnings []string `json:"warnings"`
	}{item, warnings}, err
}

// clear deletes the locks of the key, all data of the primitives, and the lock of all goods. It returns a
// warning for each of these that fails.
func (s *Service) clear(ctx context.Context, key string) []string {
	jobs := map[string]func(context.Context) error{
		"goods": func(ctx context.Context) error { return s.forget(ctx, allGoods) },
	}
	for _, strategy := range s.Strategies {
		_, holder := strategy.(locks.StockHolder)
		if cleaner, ok := strategy.(locks.Cleaner); ok && !holder {
			jobs[strategy.Card().ID] = func(ctx context.Context) error { return cleaner.Clear(ctx, key) }
		}
	}
	for _, p := range s.Primitives {
		if p.Clear != nil {
			jobs[p.Backend+" primitives"] = p.Clear
		}
	}
	return warningsOf(ctx, jobs)
}

// warningsOf runs the jobs, for 3 s at most, and returns a warning for each that fails.
func warningsOf(ctx context.Context, jobs map[string]func(context.Context) error) []string {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	warnings := []string{}
	for name, err := range runAll(ctx, jobs) {
		if err != nil {
			warnings = append(warnings, fmt.Sprintf("%s: %v", name, err))
		}
	}
	slices.Sort(warnings)
	return warnings
}

// runAll runs the jobs at the same time, and returns what each returns.
func runAll[T any](ctx context.Context, jobs map[string]func(context.Context) T) map[string]T {
	var mu sync.Mutex
	var running sync.WaitGroup
	all := map[string]T{}
	for name, job := range jobs {
		running.Go(func() {
			found := job(ctx)
			mu.Lock()
			defer mu.Unlock()
			all[name] = found
		})
	}
	running.Wait()
	return all
}

// labOnly requires the token in a header: a form or image of another site cannot send this header.
func (s *Service) labOnly(c *gin.Context) {
	switch {
	case !s.Lab:
		s.problem(c, refuse(http.StatusForbidden, api.Forbidden,
			"this replica was started without --lab: it rejects resets and failpoints", "这个副本启动时没有 --lab，不接受重置和故障点"))
	case !s.hasToken(c):
		s.problem(c, refuse(http.StatusForbidden, api.Forbidden,
			"resets and failpoints need the lab's token in the header %s",
			"重置和故障点需要在请求头 %s 里给出实验室的访问口令", api.TokenHeader))
	}
}

func (s *Service) hasToken(c *gin.Context) bool {
	given := c.GetHeader(api.TokenHeader)
	return s.Token != "" && subtle.ConstantTimeCompare([]byte(given), []byte(s.Token)) == 1
}
