package mysqllock

import (
	"context"
	"database/sql"
	"time"

	"gorm.io/gorm"

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
