package mysqllock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"gorm.io/gorm"

	"oversell/api"
	"oversell/locks"
	"oversell/stock"
)

// ShareMode reads the row under a shared lock, and then writes it (tutorial 1.6.1). It loses no
// update, but it is the wrong lock: two transactions that have both read wait for each other, and
// the database rolls one of them back.
func ShareMode(db *gorm.DB) locks.Strategy { return &shareMode{db} }

type shareMode struct{ db *gorm.DB }

func (s *shareMode) Deduct(ctx context.Context, o stock.Order) (r stock.Receipt, err error) {
	key, patience := api.Key(o.Product), newBackoff(o.Wait)
	// Where an attempt takes long, transactions deadlock with one another: on a busy machine
	// all of them, for ever, without longer pauses.
	patience.minPause = 8
	locks.Trace(ctx, api.Asked, key, o.Owner, 0)
	for {
		err := inTransaction(ctx, s.db, o, &r, patience.left(), func(tx *gorm.DB) error {
			return deductShared(ctx, tx, o, &r, patience)
		})
		// After 1213 or 1205 the transaction is rolled back, and tried again until the wait is
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

// deductShared sells between BEGIN and COMMIT.
func deductShared(ctx context.Context, tx *gorm.DB, o stock.Order, r *stock.Receipt, patience *backoff) error {
	key, asked := api.Key(o.Product), time.Now()
	var item stock.Item
	err := bounded(ctx, o, patience, func(waiting context.Context) error {
		// MySQL 8 also has FOR SHARE; MariaDB has the old syntax only.
		return tx.WithContext(waiting).Raw("SELECT * FROM db_stock WHERE id = ? LOCK IN SHARE MODE", o.Product).Take(&item).Error
	})
	granted := time.Now()
	r.Waited += granted.Sub(asked)
	if errors.Is(err, gorm.ErrRecordNotFound) {
		return fmt.Errorf("product %d: %w", o.Product, stock.ErrUnknownProduct)
	}
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
	// DANGER: other transactions may have read the row under a shared lock as well. To write,
	// each must wait until the others have ended: a deadlock, which InnoDB resolves with error
	// 1213. With FOR UPDATE only one of them would have read.
	err = bounded(ctx, o, patience, func(waiting context.Context) error {
		return tx.WithContext(waiting).Exec("UPDATE db_stock SET count = ? WHERE id = ?", r.Remaining, o.Product).Error
	})
	if err == nil {
		locks.Trace(ctx, api.Written, key, o.Owner, 0)
	}
	return err
}

// bounded runs a statement that may wait for a lock until the request's wait is over. With no
// time left, the statement has a second for its answer.
func bounded(ctx context.Context, o stock.Order, patience *backoff, statement func(context.Context) error) error {
	waiting, cancel := context.WithTimeout(ctx, max(patience.left(), time.Second))
	defer cancel()
	err := statement(waiting)
	if err != nil && waiting.Err() != nil {
		return locks.NotAcquired(ctx, api.Key(o.Product), o.Wait)
	}
	return err
}

func (*shareMode) Card() api.Card {
	return api.Card{
		ID: "share-mode", Family: "mysql", Source: "1.6.1", Scope: api.ScopeShared, Safe: true,
		Backends: []string{"mysql"},
		Title:    api.Text{EN: "SELECT … LOCK IN SHARE MODE", ZH: "共享锁 LOCK IN SHARE MODE"},
		Summary: api.Text{
			EN: "Everybody may read under a shared lock; whoever then writes must wait for all the other readers.",
			ZH: "大家都能加共享锁读取，但谁要写入，就得等其他所有读者走开。",
		},
		Protects: []api.Hazard{api.Race, api.ReplicaRace, api.Crash, api.Pause},
		Breaks: []api.Break{{Hazard: api.Deadlock, At: api.Read, Why: api.Text{
			EN: "Two readers that both want to write wait for each other until the database ends one of them with error 1213.",
			ZH: "两个读者都想写入，就互相等待，直到数据库用 1213 错误终止其中一个。",
		}}},
	}
}
