// Package mysqllock holds the strategies that lock in MySQL: with a row lock of a transaction,
// with a version that must not have changed, or with a row that represents a lock.
package mysqllock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"oversell/api"
	"oversell/locks"
	"oversell/stock"
)

// ForUpdate locks the stock row for one transaction (tutorial 1.6.1). The transaction begins with
// the locking read, so it reads the newest count. The lock ends with COMMIT, not before.
func ForUpdate(db *gorm.DB) locks.Strategy { return &forUpdate{db} }

type forUpdate struct{ db *gorm.DB }

func (s *forUpdate) Deduct(ctx context.Context, o stock.Order) (r stock.Receipt, err error) {
	key, patience := api.Key(o.Product), newBackoff(o.Wait)
	locks.Trace(ctx, api.Asked, key, o.Owner, 0)
	for {
		wait := patience.left()
		err := inTransaction(ctx, s.db, o, &r, wait, func(tx *gorm.DB) error {
			return deductLocked(ctx, tx, o, &r, wait)
		})
		// After 1205 or 1213 the transaction is rolled back, and tried again until the wait is
		// over.
		if !stock.IsContention(err) {
			return r, err
		}
		r.Retries++
		if !patience.pause(ctx) {
			return r, fmt.Errorf("%w: %w", locks.NotAcquired(ctx, key, o.Wait), err)
		}
	}
}

// deductLocked sells between BEGIN and COMMIT.
func deductLocked(ctx context.Context, tx *gorm.DB, o stock.Order, r *stock.Receipt, wait time.Duration) error {
	key, asked := api.Key(o.Product), time.Now()
	item, err := lockRow(ctx, tx, o.Product, wait)
	granted := time.Now()
	r.Waited += granted.Sub(asked)
	if err != nil {
		return err
	}
	defer func() { r.Held = time.Since(granted) }()
	locks.Trace(ctx, api.Granted, key, o.Owner, 0)
	locks.Trace(ctx, api.Read, key, o.Owner, 0)
	if item.Count < o.Qty {
		return stock.ErrSoldOut
	}
	if err := locks.Work(ctx, o.Work); err != nil {
		return err
	}
	r.Remaining = item.Count - o.Qty
	locks.Trace(ctx, api.Writing, key, o.Owner, 0)
	if err := tx.Exec("UPDATE db_stock SET count = ? WHERE id = ?", r.Remaining, o.Product).Error; err != nil {
		return err
	}
	locks.Trace(ctx, api.Written, key, o.Owner, 0)
	return nil
}

// lockRow sends SELECT … FOR UPDATE by primary key: without an index it would lock every row that
// it scans.
func lockRow(ctx context.Context, tx *gorm.DB, product int64, wait time.Duration) (item stock.Item, err error) {
	locking := clause.Locking{Strength: clause.LockingStrengthUpdate}
	if wait <= 0 {
		locking.Options = clause.LockingOptionsNoWait
		wait = time.Second // for the answer, not for the lock
	}
	waiting, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	err = tx.WithContext(waiting).Clauses(locking).Take(&item, product).Error
	switch {
	case errors.Is(err, gorm.ErrRecordNotFound):
		return item, fmt.Errorf("product %d: %w", product, stock.ErrUnknownProduct)
	case err != nil && waiting.Err() != nil:
		return item, locks.NotAcquired(ctx, api.Key(product), wait)
	}
	return item, err
}

func (*forUpdate) Card() api.Card {
	return api.Card{
		ID: "for-update", Family: "mysql", Source: "1.6.1", Scope: api.ScopeShared, Safe: true,
		Core: true, Backends: []string{"mysql"},
		Title: api.Text{EN: "SELECT … FOR UPDATE", ZH: "悲观锁 FOR UPDATE"},
		Summary: api.Text{
			EN: "The database locks the row until the transaction commits; everybody else waits for it.",
			ZH: "数据库把这一行锁住直到事务提交，其他请求排队等待。",
		},
		Protects: []api.Hazard{api.Race, api.ReplicaRace, api.Crash, api.Pause},
		Breaks:   []api.Break{},
		Tutorial: []api.Figure{{Throughput: 231.5, MedianMS: 411, Remaining: 0}},
	}
}
