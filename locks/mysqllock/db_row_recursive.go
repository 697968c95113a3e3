package mysqllock

import (
	"context"
	"fmt"
	"time"

	"gorm.io/gorm"

	"oversell/api"
	"oversell/locks"
	"oversell/stock"
)

// DBRowRecursive is the listing of tutorial 2.2 as printed. A request whose INSERT fails calls the
// whole method again, and then continues below the catch block as if it had the lock. So it is no
// Locker: the retry contains the sale. DBRowNaive retries only the INSERT.
func DBRowRecursive(db *gorm.DB) locks.Strategy {
	return &dbRowRecursive{dbRowNaive{db}, stock.NewLedger(db)}
}

// recursivePrefix separates its rows from those of DBRowNaive, in the same table.
const recursivePrefix = "recursive:"

type dbRowRecursive struct {
	rows   dbRowNaive
	ledger *stock.Ledger
}

func (s *dbRowRecursive) Deduct(ctx context.Context, o stock.Order) (r stock.Receipt, err error) {
	locks.Trace(ctx, api.Asked, api.Key(o.Product), o.Owner, 0)
	call := &recursiveCall{s, o, time.Now(), &r, 0}
	err = call.checkAndLock(ctx)
	r.Held = time.Since(call.began) - r.Waited
	switch {
	case call.taken > 0 && err != nil: // not wrapped: the error must not say that nothing was taken
		return r, fmt.Errorf("%d pieces were taken, and then: %v", call.taken, err) //nolint:errorlint // see above
	case call.taken == 0 && err == nil:
		return r, stock.ErrSoldOut
	}
	return r, err
}

// recursiveCall is one request, with all its calls of checkAndLock.
type recursiveCall struct {
	*dbRowRecursive
	order   stock.Order
	began   time.Time
	receipt *stock.Receipt
	taken   int // pieces that all calls took together
}

// checkAndLock has the name and the order of the listing.
func (c *recursiveCall) checkAndLock(ctx context.Context) error {
	key := api.Key(c.order.Product)
	trying, done := locks.CleanUp(ctx) // the server would still execute a cancelled INSERT
	id, err := c.rows.insert(trying, recursivePrefix+key)
	done()
	if err != nil {
		return stock.NothingWritten(ctx, err)
	}
	if id > 0 {
		c.receipt.Waited = time.Since(c.began)
		locks.Trace(ctx, api.Granted, key, c.order.Owner, 0)
		defer c.unlock(ctx, id)
		return c.sell(ctx)
	}
	c.receipt.Retries++
	// The listing waits for ever. Here the end of the wait ends the sleep like an interrupt, which the
	// listing only prints.
	if locks.SleepRetry(ctx, locks.Request{Key: key, Wait: c.order.Wait}, c.began, naivePause) == nil {
		if err := c.checkAndLock(ctx); err != nil {
			return err
		}
	}
	// DANGER: the inner call has sold and released its lock, or the wait is over. But the listing goes
	// on below its catch block: this call sells once more, without a lock. Its DELETE finds no row.
	return c.sell(ctx)
}

func (c *recursiveCall) sell(ctx context.Context) error {
	key, o := api.Key(c.order.Product), c.order
	item, err := c.ledger.Read(ctx, o.Product)
	if err != nil {
		return err
	}
	locks.Trace(ctx, api.Read, key, o.Owner, 0)
	if item.Count < o.Qty {
		return nil // the listing does not report this
	}
	if err := locks.Work(ctx, o.Work); err != nil {
		return err
	}
	locks.Trace(ctx, api.Writing, key, o.Owner, 0)
	if err := c.ledger.Write(ctx, item, item.Count-o.Qty); err != nil {
		return err
	}
	locks.Trace(ctx, api.Written, key, o.Owner, 0)
	c.taken, c.receipt.Remaining = c.taken+o.Qty, item.Count-o.Qty
	return nil
}

func (c *recursiveCall) unlock(ctx context.Context, id int64) {
	clean, cancel := locks.CleanUp(ctx)
	defer cancel()
	_ = c.rows.remove(clean, id) // the listing does not look at the answer
	locks.Trace(ctx, api.Released, api.Key(c.order.Product), c.order.Owner, 0)
}

func (s *dbRowRecursive) Clear(ctx context.Context, key string) error {
	return s.rows.Clear(ctx, recursivePrefix+key)
}

func (*dbRowRecursive) Card() api.Card {
	return api.Card{
		ID: "db-row-recursive", Family: "mysql", Source: "2.2", Scope: api.ScopeNone,
		Backends: []string{"mysql"}, Slow: true,
		Title: api.Text{EN: "INSERT to lock, with the retry as printed", ZH: "插入加锁，照教程原样递归重试"},
		Summary: api.Text{
			EN: "A request whose INSERT fails calls the method again, and then sells once more without the lock: one request takes several pieces.",
			ZH: "插入失败的请求递归调用自己，返回后不持锁又卖一次：一个请求扣掉好几件库存。",
		},
		When: api.Text{
			EN: "Not for production: a request that had to wait takes several pieces, without the lock. Use `db-row` instead.",
			ZH: "不要用于生产环境：等过锁的请求会在不持锁时再扣几次库存。请改用 `db-row`。",
		},
		Breaks: []api.Break{
			{Hazard: api.Race, Why: api.Text{
				EN: "A request that has waited goes on without the lock, once for each failed INSERT, and sells beside the holder.",
				ZH: "等过锁的请求，每失败一次插入，就会不持锁往下执行一次，和持有者同时卖。",
			}},
			{Hazard: api.ReplicaRace, Why: api.Text{
				EN: "The same with requests on other replicas. If the stock ends at 0, that looks right, but more pieces were taken than sold.",
				ZH: "同上，请求来自不同的副本。最后库存为 0 看似正确，其实扣掉的比卖出的多。",
			}},
			{Hazard: api.Crash, Why: api.Text{
				EN: "The row has no expiry: after the holder's death, every request waits in vain, and then sells without the lock.",
				ZH: "这一行没有过期时间：持有者崩溃后，请求都等不到锁，最后不持锁就卖。",
			}},
			{Hazard: api.DatabaseDown, Why: api.Text{
				EN: "A request whose INSERT fails does not stop: it goes on without the lock, and takes pieces that nobody bought.",
				ZH: "插入失败的请求不会停下，而是不持锁继续执行，扣掉没有人买的库存。",
			}},
		},
		Tutorial: []api.Figure{{Throughput: 20.1, MedianMS: 152, Remaining: 0}},
	}
}
