package handlers

import (
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"oversell/api"
	"oversell/locks"
)

// stockChecks limits the checks of stockWarning. Under load, a sale is not alone, so it checks nothing.
type stockChecks struct {
	selling atomic.Int64 // sales in progress
	mu      sync.Mutex
	second  int64 // the second that done counts
	done    int
}

const (
	maxChecks    = 3 // per second
	checkTimeout = 200 * time.Millisecond
)

// mayCheck reports whether a sale may check: no other sale is in progress on this replica.
func (c *stockChecks) mayCheck() bool {
	if c.selling.Load() > 1 {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := time.Now().Unix(); now != c.second {
		c.second, c.done = now, 0
	}
	c.done++
	return c.done <= maxChecks
}

// stockWarning names other strategies that hold stock of the product outside its row. After a sale by
// skip-locked, the row may have no pieces for the next strategy. After a sale by redis-watch, it
// still has the pieces that were sold. The strategies ask their backends, so all replicas warn.
func (s *Service) stockWarning(ctx context.Context, strategy string, product int64) api.Text {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	asked := map[string]func(context.Context) bool{}
	for _, other := range s.Strategies {
		if holder, ok := other.(locks.StockHolder); ok && other.Card().ID != strategy {
			asked[other.Card().ID] = func(ctx context.Context) bool {
				holds, err := holder.Holds(ctx, product)
				return err == nil && holds // a backend that is down cannot warn
			}
		}
	}
	var holders []string
	for id, holds := range runAll(ctx, asked) {
		if holds {
			holders = append(holders, id)
		}
	}
	if len(holders) == 0 {
		return api.Text{}
	}
	slices.Sort(holders)
	return api.Textf("the stock of product %[1]d is also outside its row, with %[2]s: the row may lack pieces, or have pieces that are sold already. "+
		"Reset the stock before you use another strategy: PUT /stock/%[1]d?count=5000",
		"商品 %[1]d 的库存有一部分在数据行之外，由 %[2]s 保存：数据行可能少了库存，也可能还有已经卖出的库存。"+
			"换用其他策略之前，请重置库存：PUT /stock/%[1]d?count=5000", product, strings.Join(holders, ", "))
}
