package local

import (
	"context"
	"fmt"
	"time"

	"gorm.io/gorm"

	"oversell/api"
	"oversell/locks"
	"oversell/stock"
)

// unlocked is the traced step of a sale between the release of the mutex and the commit.
const unlocked api.Step = "unlocked"

// MutexInTx takes the mutex inside the transaction and releases it before the commit (the mutex of
// tutorial 1.4 in the transaction of 1.6.1). A Java method that is both @Transactional and
// synchronized does the same. Requests hold a pooled connection while they wait for the mutex.
func MutexInTx(db *gorm.DB) locks.Strategy { return &mutexInTx{db: db} }

type mutexInTx struct {
	db    *gorm.DB
	turns locks.FIFOMutex
}

func (s *mutexInTx) Deduct(ctx context.Context, o stock.Order) (r stock.Receipt, err error) {
	began, queue := time.Now(), locks.Request{Key: api.Key(o.Product), Wait: o.Wait}
	locks.Trace(ctx, api.Asked, queue.Key, o.Owner, 0)
	for {
		left := max(0, o.Wait-time.Since(began))
		err := locks.InTransaction(ctx, s.db, o, &r, left, func(tx *gorm.DB) error {
			if err := s.synchronized(ctx, tx, o, &r, left); err != nil {
				return err
			}
			// DANGER: from here to the COMMIT the mutex is free, but the UPDATE is invisible to
			// others. The next request reads the old count from its snapshot. Its write waits for
			// the row lock of this transaction, and then overwrites this sale. MariaDB with
			// innodb_snapshot_isolation rejects that write with error 1020.
			locks.Trace(ctx, unlocked, queue.Key, o.Owner, 0)
			return nil
		})
		if !stock.IsContention(err) {
			return r, err
		}
		// The transaction was rolled back (1205, 1213 or 1020). Try again until the wait is over.
		r.Retries++
		pause := time.Millisecond + locks.Jitter(ctx, 20*time.Millisecond)
		if over := locks.SleepRetry(ctx, queue, began, pause); over != nil {
			return r, fmt.Errorf("%w: %w", over, err)
		}
	}
}

// synchronized acts like a synchronized Java method: one request of this process runs it at a time.
func (s *mutexInTx) synchronized(ctx context.Context, tx *gorm.DB, o stock.Order, r *stock.Receipt, wait time.Duration) error {
	key, asked := api.Key(o.Product), time.Now()
	leave, err := s.turns.Take(ctx, key, wait)
	granted := time.Now()
	r.Waited += granted.Sub(asked)
	if err != nil {
		return err
	}
	defer leave()
	defer func() { r.Held = time.Since(granted) }()
	locks.Trace(ctx, api.Granted, key, o.Owner, 0)
	var item stock.Item
	if err := tx.Take(&item, o.Product).Error; err != nil { // the first read takes the snapshot
		return stock.Found(o.Product, err)
	}
	return locks.Sell(ctx, o, r, item.Count, func(count int) error {
		// InnoDB waits at most 2 s for the lock of the row (stock.Open), then returns error 1205.
		return tx.Exec("UPDATE db_stock SET count = ? WHERE id = ?", count, o.Product).Error
	})
}

func (*mutexInTx) Card() api.Card {
	return api.Card{
		ID: "mutex-in-tx", Family: "local", Source: "1.4, 1.6.1", Scope: api.ScopeNone,
		Backends: []string{"mysql"},
		Title:    api.Text{EN: "A mutex inside the transaction", ZH: "事务里的互斥锁"},
		Summary: api.Text{
			EN: "BEGIN, lock the mutex, SELECT, UPDATE, unlock, and only then COMMIT: the next request reads before the sale is visible.",
			ZH: "开启事务，加锁，查询，更新，解锁，最后才提交：下一个请求读到的还是提交前的库存。",
		},
		When: api.Text{
			EN: "Not for production: the mutex is free before the commit, so even a single process can lose updates. Use `for-update` instead.",
			ZH: "不要用于生产环境：提交之前锁就释放了，单个进程也会丢失更新。请改用 `for-update`。",
		},
		Breaks: []api.Break{
			{Hazard: api.EarlyRelease, At: unlocked, Why: api.Text{
				EN: "The mutex is free before the commit, so the next request reads the old count, even in the same process. MariaDB 11.6 and later reject its write with error 1020 (innodb_snapshot_isolation, which the lab turns off). The request then starts again, and no update is lost.",
				ZH: "锁在提交之前就释放了，下一个请求读到旧库存，哪怕在同一个进程里。MariaDB 11.6 起默认开启 innodb_snapshot_isolation（实验室里关闭），这次写入会被 1020 错误拒绝，请求从头重试，不会丢失更新。",
			}},
			{Hazard: api.ReplicaRace, Why: api.Text{
				EN: "The lock is in the memory of one process. Each other replica has a lock of its own.",
				ZH: "锁只存在于一个进程的内存里，其他副本各有自己的锁。",
			}},
		},
	}
}
