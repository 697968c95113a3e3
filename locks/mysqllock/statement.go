package mysqllock

import (
	"context"
	"database/sql"
	"time"

	"gorm.io/gorm"

	"oversell/stock"
)

// statement sends one statement that writes, in one round trip, and lets it end: a caller
// who hangs up would not stop it in the server, only never learn what it did. InnoDB ends
// its wait for a row (stock.Open), the driver that for an answer.
//
// gorm would hide what the server says besides the rows affected: LAST_INSERT_ID.
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
	defer func() { r.Held = time.Since(sent) }() // the row, where it was not somebody else's
	result, err := conn.ExecContext(context.WithoutCancel(ctx), query, args...)
	return result, stock.Indeterminate(err)
}
