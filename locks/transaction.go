package locks

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"gorm.io/gorm"

	"oversell/api"
	"oversell/stock"
)

// Sell is the critical section inside a transaction. It checks count, and writes the new count.
func Sell(ctx context.Context, o stock.Order, r *stock.Receipt, count int, write func(count int) error) error {
	key := api.Key(o.Product)
	Trace(ctx, api.Read, key, o.Owner, 0)
	if count < o.Qty {
		return stock.ErrSoldOut
	}
	if err := Work(ctx, o.Work); err != nil {
		return err
	}
	r.Remaining = count - o.Qty
	Trace(ctx, api.Writing, key, o.Owner, 0)
	if err := write(r.Remaining); err != nil {
		return err
	}
	Trace(ctx, api.Written, key, o.Owner, 0)
	return nil
}

// InTransaction runs deduct between BEGIN and COMMIT. It stores the wait for a connection in r.
func InTransaction(ctx context.Context, db *gorm.DB, o stock.Order, r *stock.Receipt, wait time.Duration, deduct func(*gorm.DB) error, opts ...*sql.TxOptions) error {
	asked, committing := time.Now(), false
	r.Held = 0 // discard the time of an earlier, failed attempt
	waiting, cancel := context.WithTimeout(ctx, max(wait, time.Second))
	defer cancel()
	err := stock.Connection(waiting, db, func(conn *gorm.DB) error {
		r.Pooled += time.Since(asked)
		return conn.WithContext(ctx).Transaction(func(tx *gorm.DB) error {
			if err := deduct(tx); err != nil {
				return err
			}
			committing = true
			return nil
		}, opts...)
	})
	if r.Held > 0 { // the lock was granted, and the transaction has ended
		Trace(ctx, api.Released, api.Key(o.Product), o.Owner, 0)
	}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, stock.ErrNoRoom):
		return fmt.Errorf("%w: %w", NotAcquired(ctx, api.Key(o.Product), o.Wait), err)
	case committing:
		return stock.Committed(err)
	case stock.IsContention(err) || NothingTaken(err):
		return err
	default: // rolled back, or never begun
		return stock.NothingWritten(ctx, err)
	}
}
