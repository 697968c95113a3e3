package local

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"gorm.io/gorm"

	"oversell/api"
	"oversell/locks"
	"oversell/stock"
)

// unlocked: the mutex is free, and the transaction has not committed yet.
const unlocked api.Step = "unlocked"

// MutexInTx takes the mutex inside the transaction and releases it before the
// commit, as a method does that is @Transactional and synchronized (the
// tutorial's 1.4, with 1.6.1's transaction around it). Others hold a pooled
// connection while they wait for the mutex.
func MutexInTx(db *gorm.DB) locks.Strategy { return &mutexInTx{db: db} }

type mutexInTx struct {
	db    *gorm.DB
	turns locks.FIFOMutex
}

func (s *mutexInTx) Deduct(ctx context.Context, o stock.Order) (r stock.Receipt, err error) {
	began, queue := time.Now(), locks.Request{Key: api.Key(o.Product), Wait: o.Wait}
	locks.Trace(ctx, api.Asked, queue.Key, o.Owner, 0)
	for {
		err := s.try(ctx, o, &r, max(0, o.Wait-time.Since(began)))
		if !stock.IsContention(err) {
			return r, err
		}
		// 1205, 1213 or 1020: rolled back, and tried again until the wait is over.
		r.Retries++
		pause := time.Millisecond + rand.N(20*time.Millisecond) //nolint:gosec // jitter, not a secret
		if over := locks.SleepRetry(ctx, queue, began, pause); over != nil {
			return r, fmt.Errorf("%w: %w", over, err)
		}
	}
}

// try is one transaction on one connection.
func (s *mutexInTx) try(ctx context.Context, o stock.Order, r *stock.Receipt, wait time.Duration) error {
	asked, committing := time.Now(), false
	r.Held = 0 // of an attempt that was beaten
	waiting, cancel := context.WithTimeout(ctx, max(wait, time.Second))
	defer cancel()
	err := stock.Connection(waiting, s.db, func(conn *gorm.DB) error {
		r.Pooled += time.Since(asked)
		return conn.WithContext(ctx).Transaction(func(tx *gorm.DB) error {
			if err := s.synchronized(ctx, tx, o, r, wait); err != nil {
				return err
			}
			// DANGER: from here to the COMMIT the mutex is free and our UPDATE is
			// invisible. The next task reads the old count from its snapshot, waits
			// for our row lock when it writes, and then writes over what we sold.
			// MariaDB with innodb_snapshot_isolation refuses that write with 1020.
			committing = true
			locks.Trace(ctx, unlocked, api.Key(o.Product), o.Owner, 0)
			return nil
		})
	})
	if r.Held > 0 { // granted, and by now committed or rolled back
		locks.Trace(ctx, api.Released, api.Key(o.Product), o.Owner, 0)
	}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, stock.ErrNoRoom):
		return fmt.Errorf("%w: %w", locks.NotAcquired(ctx, api.Key(o.Product), o.Wait), err)
	case stock.IsContention(err) || locks.NothingTaken(err):
		return err
	case committing:
		return stock.Indeterminate(err)
	default: // rolled back, or never begun
		return stock.NothingWritten(ctx, err)
	}
}

// synchronized is the body of the method: one task at a time in this process.
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
	err = tx.Take(&item, o.Product).Error // the first read, so the snapshot is taken here
	if errors.Is(err, gorm.ErrRecordNotFound) {
		return fmt.Errorf("product %d: %w", o.Product, stock.ErrUnknownProduct)
	}
	if err != nil {
		return err
	}
	locks.Trace(ctx, api.Read, key, o.Owner, 0)
	if item.Count < o.Qty {
		return stock.ErrSoldOut
	}
	if err := locks.Work(ctx, o.Work); err != nil {
		return err
	}
	r.Remaining = item.Count - o.Qty
	locks.Trace(ctx, api.Writing, key, o.Owner, 0)
	// The row may be locked by somebody who has not committed: InnoDB waits 2 s
	// at most (stock.Open), and says 1205.
	if err := tx.Exec("UPDATE db_stock SET count = ? WHERE id = ?", r.Remaining, o.Product).Error; err != nil {
		return err
	}
	locks.Trace(ctx, api.Written, key, o.Owner, 0)
	return nil
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
		Breaks: []api.Break{
			{Hazard: api.EarlyRelease, At: unlocked, Why: api.Text{
				EN: "The mutex is free before the commit, so the next request reads the old count, even in the same process. MariaDB 11.6 and later refuse its write with error 1020 (innodb_snapshot_isolation, which the lab turns off); the request then starts again, and nothing is lost.",
				ZH: "锁在提交之前就释放了，下一个请求读到旧库存，哪怕在同一个进程里。MariaDB 11.6 起默认开启 innodb_snapshot_isolation（实验室里关闭），这次写入会被 1020 错误拒绝，请求从头重试，不会丢失更新。",
			}},
			{Hazard: api.ReplicaRace, Why: api.Text{
				EN: "The lock lives in one address space; the replica next door has another.",
				ZH: "锁只存在于一个进程的内存里，隔壁的副本用的是另一把锁。",
			}},
		},
	}
}
