// Package mysqllock holds the strategies that lock in MySQL. They use row locks of transactions,
// a version column, or rows that represent locks.
package mysqllock

import (
	"context"
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
	locks.Trace(ctx, api.Asked, api.Key(o.Product), o.Owner, 0)
	err = newBackoff(o.Wait).retry(ctx, o, &r, func(left time.Duration) error {
		return locks.InTransaction(ctx, s.db, o, &r, left, func(tx *gorm.DB) error {
			return deductLocked(ctx, tx, o, &r, left)
		})
	})
	return r, err
}

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
	return locks.Sell(ctx, o, r, item.Count, func(count int) error {
		return tx.Exec("UPDATE db_stock SET count = ? WHERE id = ?", count, o.Product).Error
	})
}

// lockRow finds the row by primary key: without an index, FOR UPDATE locks every row that it scans.
func lockRow(ctx context.Context, tx *gorm.DB, product int64, wait time.Duration) (item stock.Item, err error) {
	locking := clause.Locking{Strength: clause.LockingStrengthUpdate}
	if wait <= 0 {
		locking.Options = clause.LockingOptionsNoWait
		wait = time.Second // for the answer; NOWAIT does not wait for the lock
	}
	err = withTimeout(ctx, api.Key(product), wait, func(ctx context.Context) error {
		return tx.WithContext(ctx).Clauses(locking).Take(&item, product).Error
	})
	return item, stock.Found(product, err)
}

func (*forUpdate) Card() api.Card {
	return api.Card{
		ID: "for-update", Family: "mysql", Source: "1.6.1", Scope: api.ScopeShared, Safe: true,
		Core: true, Backends: []string{"mysql"},
		Title: api.Text{EN: "SELECT … FOR UPDATE", ZH: "悲观锁 FOR UPDATE"},
		Summary: api.Text{
			EN: "The database locks the row until the transaction commits. Other requests wait for the lock.",
			ZH: "数据库把这一行锁住直到事务提交，其他请求排队等待。",
		},
		When: api.Text{
			EN: "Choose it if all data is in one database, one statement is not enough, and the transaction is short. For long work, use `reservation`.",
			ZH: "数据都在一个数据库里，一条语句又不够，而且事务很短时选它。业务时间长就用 `reservation`。",
		},
		Protects: []api.Hazard{api.Race, api.ReplicaRace, api.Crash, api.Pause, api.Operator, api.OperatorAtWrite},
		Breaks:   []api.Break{staysConnected()},
		Tutorial: []api.Figure{{Throughput: 231.5, MedianMS: 411, Remaining: 0}},
	}
}
