package mysqllock

import (
	"context"
	"time"

	"gorm.io/gorm"

	"oversell/api"
	"oversell/locks"
	"oversell/stock"
)

// ShareMode reads the row under a shared lock, the wrong lock, and then writes it (tutorial 1.6.1).
// No update is lost, but two transactions deadlock after their reads, and one is rolled back.
func ShareMode(db *gorm.DB) locks.Strategy { return &shareMode{db} }

type shareMode struct{ db *gorm.DB }

func (s *shareMode) Deduct(ctx context.Context, o stock.Order) (r stock.Receipt, err error) {
	locks.Trace(ctx, api.Asked, api.Key(o.Product), o.Owner, 0)
	pauses := newBackoff(o.Wait)
	err = pauses.retry(ctx, o, &r, func(left time.Duration) error {
		return locks.InTransaction(ctx, s.db, o, &r, left, func(tx *gorm.DB) error {
			return deductShared(ctx, tx, o, &r, pauses)
		})
	})
	return r, err
}

func deductShared(ctx context.Context, tx *gorm.DB, o stock.Order, r *stock.Receipt, pauses *backoff) error {
	key, asked := api.Key(o.Product), time.Now()
	var item stock.Item
	err := withTimeout(ctx, key, max(pauses.left(), time.Second), func(ctx context.Context) error {
		// MySQL 8 also has FOR SHARE; MariaDB has the old syntax only.
		return tx.WithContext(ctx).Raw("SELECT * FROM db_stock WHERE id = ? LOCK IN SHARE MODE", o.Product).Take(&item).Error
	})
	granted := time.Now()
	r.Waited += granted.Sub(asked)
	if err != nil {
		return stock.Found(o.Product, err)
	}
	defer func() { r.Held = time.Since(granted) }()
	locks.Trace(ctx, api.Granted, key, o.Owner, 0)
	return locks.Sell(ctx, o, r, item.Count, func(count int) error {
		// DANGER: other transactions may have read the row under a shared lock as well. To write,
		// each must wait until the others end. InnoDB resolves this deadlock with error 1213. With
		// FOR UPDATE, only one transaction would have read the row.
		// The longer an attempt takes, the more transactions deadlock with it. With shorter pauses, all transactions on a
		// busy machine could deadlock for ever. A stop between two statements, as in the step mode, is no part of it.
		writing := time.Now()
		defer func() { pauses.least = 8 * (granted.Sub(asked) + o.Work + time.Since(writing)) }()
		return withTimeout(ctx, key, max(pauses.left(), time.Second), func(ctx context.Context) error {
			return tx.WithContext(ctx).Exec("UPDATE db_stock SET count = ? WHERE id = ?", count, o.Product).Error
		})
	})
}

func (*shareMode) Card() api.Card {
	return api.Card{
		ID: "share-mode", Family: "mysql", Source: "1.6.1", Scope: api.ScopeShared, Safe: true,
		Backends: []string{"mysql"},
		Title:    api.Text{EN: "SELECT … LOCK IN SHARE MODE", ZH: "共享锁 LOCK IN SHARE MODE"},
		Summary: api.Text{
			EN: "All requests may read under a shared lock. To write, a request must wait for all the other readers.",
			ZH: "多个请求可以同时加共享锁读取；要写入，必须等其他读者都释放共享锁。",
		},
		When: api.Text{
			EN: "Not for production: if two readers then write, they deadlock, and one of them is rolled back. Use `for-update` instead.",
			ZH: "不要用于生产环境：两个读者都要写就会死锁，其中一个被回滚。请改用 `for-update`。",
		},
		Protects: []api.Hazard{api.Race, api.ReplicaRace, api.Crash, api.Pause, api.Operator, api.OperatorAtWrite},
		Breaks: []api.Break{{Hazard: api.Deadlock, At: api.Read, Why: api.Text{
			EN: "Two readers that both want to write wait for each other until the database ends one of them with error 1213.",
			ZH: "两个读者都想写入，就互相等待，直到数据库用 1213 错误终止其中一个。",
		}}, staysConnected()},
	}
}
