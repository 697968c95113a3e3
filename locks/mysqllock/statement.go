package mysqllock

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"gorm.io/gorm"

	"oversell/api"
	"oversell/locks"
	"oversell/stock"
)

// statement sends one statement that writes, in one round trip. It does not end with ctx: that
// would not stop the statement in the server, only hide its outcome. InnoDB bounds the wait for a
// row (stock.Open), the driver the wait for an answer.
//
// It does without gorm, which does not return LAST_INSERT_ID.
func statement(ctx context.Context, db *gorm.DB, r *stock.Receipt, wait time.Duration, query string, args ...any) (sql.Result, error) {
	pool, err := db.DB()
	if err != nil {
		return nil, stock.NothingWritten(ctx, err)
	}
	asked := time.Now()
	waiting, cancel := context.WithTimeout(ctx, max(wait, time.Second))
	defer cancel()
	conn, err := pool.Conn(waiting)
	r.Pooled += time.Since(asked)
	if err != nil {
		return nil, stock.NothingWritten(ctx, err)
	}
	defer func() { _ = conn.Close() }() // back to the pool
	sent := time.Now()
	defer func() { r.Held = time.Since(sent) }() // also counts the wait for the row's lock
	result, err := conn.ExecContext(context.WithoutCancel(ctx), query, args...)
	return result, stock.Indeterminate(err)
}

// workThenWrite sells without a lock: it does the extra work, and then calls write until it
// succeeds or the wait is over. Nothing is locked or reserved during the work, so the stock may
// be sold out after it.
func workThenWrite(ctx context.Context, o stock.Order, r *stock.Receipt, write func(wait time.Duration) error) error {
	key := api.Key(o.Product)
	locks.Trace(ctx, api.Asked, key, o.Owner, 0)
	if err := locks.Work(ctx, o.Work); err != nil {
		return err
	}
	locks.Trace(ctx, api.Writing, key, o.Owner, 0)
	began, patience := time.Now(), newBackoff(o.Wait)
	for {
		r.Waited = time.Since(began) - r.Pooled
		err := write(patience.left())
		// Another transaction may have locked the row for longer than InnoDB waits.
		if err == nil {
			locks.Trace(ctx, api.Written, key, o.Owner, 0)
		}
		if !stock.IsContention(err) {
			return err
		}
		r.Retries++
		if !patience.pause(ctx) {
			return fmt.Errorf("%w: %w", locks.NotAcquired(ctx, key, o.Wait), err)
		}
	}
}
