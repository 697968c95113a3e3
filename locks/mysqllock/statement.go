package mysqllock

import (
	"context"
	"database/sql"
	"time"

	"gorm.io/gorm"

	"oversell/api"
	"oversell/locks"
	"oversell/stock"
)

// statement sends one write in one round trip. ctx does not cancel the write, because the server
// would still execute it, with an unknown outcome. InnoDB limits the wait for the row, and the
// driver the wait for an answer (stock.Open). gorm is bypassed, because it hides LAST_INSERT_ID.
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

// lastInsertID takes the results of a statement. It returns the x of LAST_INSERT_ID(x), or the id
// of a new row. If the statement found no row, found is false and id is 0.
func lastInsertID(result sql.Result, err error) (id int64, found bool, _ error) {
	if err != nil {
		return 0, false, err
	}
	if n, err := result.RowsAffected(); err != nil || n == 0 {
		return 0, false, err
	}
	id, err = result.LastInsertId()
	return id, err == nil, err
}

// onOwnRow executes a statement that names the row of one grant. Without this row, it returns ErrNotHeld.
func onOwnRow(ctx context.Context, db *gorm.DB, query string, args ...any) error {
	_, found, err := lastInsertID(db.Statement.ConnPool.ExecContext(ctx, query, args...))
	if err == nil && !found {
		err = locks.ErrNotHeld
	}
	return err
}

// deleteOwnRow is onOwnRow for a DELETE, which it sends again if the server has rolled it back.
func deleteOwnRow(ctx context.Context, db *gorm.DB, query string, args ...any) error {
	for {
		if err := onOwnRow(ctx, db, query, args...); !stock.IsContention(err) || ctx.Err() != nil {
			return err
		}
	}
}

// workThenWrite does the work without a lock, and then writes. By then, the stock may be sold out.
func workThenWrite(ctx context.Context, o stock.Order, r *stock.Receipt, write func(wait time.Duration) error) error {
	key := api.Key(o.Product)
	locks.Trace(ctx, api.Asked, key, o.Owner, 0)
	if err := locks.Work(ctx, o.Work); err != nil {
		return err
	}
	locks.Trace(ctx, api.Writing, key, o.Owner, 0)
	began := time.Now()
	return newBackoff(o.Wait).retry(ctx, o, r, func(left time.Duration) error {
		r.Waited = time.Since(began) - r.Pooled
		err := write(left)
		if err == nil {
			locks.Trace(ctx, api.Written, key, o.Owner, 0)
		}
		return err
	})
}
