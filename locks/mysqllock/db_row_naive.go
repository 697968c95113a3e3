package mysqllock

import (
	"context"
	"time"

	"gorm.io/gorm"

	"oversell/api"
	"oversell/locks"
	"oversell/stock"
)

// DBRowNaive locks with a row under a unique key (tutorial 2.2). The request that INSERTs the row
// holds the lock, and DELETEs the row to release. Other requests sleep 50 ms and try again.
func DBRowNaive(db *gorm.DB) locks.Locker { return &dbRowNaive{db} }

type dbRowNaive struct{ db *gorm.DB }

const naivePause = 50 * time.Millisecond

// Acquire repeats the INSERT until it succeeds or the wait is over. DANGER: if the holder dies, or
// the answer to the INSERT is lost, the row stays until Clear deletes it. The row has no expiry,
// and does not name its owner.
func (l *dbRowNaive) Acquire(ctx context.Context, r locks.Request) (*locks.Lock, error) {
	for began := time.Now(); ; {
		asked := time.Now()
		// ctx does not cancel the INSERT, because the server would still execute it.
		trying, done := locks.CleanUp(ctx)
		id, err := l.insert(trying, r.Key)
		done()
		switch {
		case err != nil && ctx.Err() == nil:
			return nil, &stock.Unavailable{Backend: "mysql", Err: err}
		case id > 0 && ctx.Err() != nil: // the request was cancelled
			clean, cancel := locks.CleanUp(ctx)
			defer cancel()
			_ = l.remove(clean, id)
		case id > 0:
			return locks.NewLock(ctx, locks.Grant{
				Key: r.Key, Owner: r.Owner, Asked: asked,
				Release: func(ctx context.Context) error { return l.remove(ctx, id) },
			}), nil
		}
		if err := locks.SleepRetry(ctx, r, began, naivePause); err != nil {
			return nil, err
		}
	}
}

// insert returns the new row's id, or 0 if the lock is held.
func (l *dbRowNaive) insert(ctx context.Context, key string) (int64, error) {
	id, _, err := lastInsertID(l.db.Statement.ConnPool.ExecContext(ctx, "INSERT INTO db_lock_naive (lock_name) VALUES (?)", key))
	if isHeld(err) {
		return 0, nil
	}
	return id, err
}

// isHeld reports whether an INSERT failed because of another row with its key. Errors 1213 and 1205
// count, too, because requests that wait for the same row may deadlock.
func isHeld(err error) bool { return stock.IsContention(err) || stock.IsDuplicate(err) }

// remove deletes the row of one grant. It returns ErrNotHeld if there is no such row.
func (l *dbRowNaive) remove(ctx context.Context, id int64) error {
	return deleteOwnRow(ctx, l.db, "DELETE FROM db_lock_naive WHERE id = ?", id)
}

// Clear is the only way to free the lock after a crash.
func (l *dbRowNaive) Clear(ctx context.Context, key string) error {
	return l.db.WithContext(ctx).Exec("DELETE FROM db_lock_naive WHERE lock_name = ?", key).Error
}

func (*dbRowNaive) Card() api.Card {
	return api.Card{
		ID: "db-row-naive", Family: "mysql", Source: "2.2; 002", Scope: api.ScopeShared, Safe: true,
		Backends: []string{"mysql"}, Locker: true, Slow: true,
		Title: api.Text{EN: "INSERT to lock, DELETE to unlock", ZH: "插入加锁，删除解锁"},
		Summary: api.Text{
			EN: "The request that inserts the row holds the lock, and deletes the row to release it. The others sleep 50 ms and try again.",
			ZH: "插入这一行的请求持有锁，删除这一行即释放锁；其他请求每隔 50 毫秒重试。",
		},
		When: api.Text{
			EN: "Not for production: if the holder dies, the key stays locked for ever. Use `db-row` instead.",
			ZH: "不要用于生产环境：持有者崩溃后，锁永远不会释放。请改用 `db-row`。",
		},
		Protects: []api.Hazard{api.Race, api.ReplicaRace, api.Pause},
		Breaks: []api.Break{
			{Hazard: api.Crash, At: api.Granted, Why: api.Text{
				EN: "The row has no expiry: if the holder dies, the key stays locked for ever.",
				ZH: "这一行没有过期时间，持有者崩溃后，锁永远不会释放。",
			}},
			{Hazard: api.DatabaseDown, Why: api.Text{
				EN: "The holder cannot delete its row while the database is down. The row is still there afterwards, and the key stays locked for ever.",
				ZH: "数据库宕机期间，持有者无法删除自己那一行；恢复之后这一行还在，锁永远不会释放。",
			}},
			{Hazard: api.LostReply, Why: api.Text{
				EN: "The row does not name its owner: if the answer to the INSERT is lost, no request may delete the row.",
				ZH: "这一行没有记录持有者：插入成功但回复丢失后，任何请求都不能删除它。",
			}},
			{Hazard: api.Nesting, Why: api.Text{
				EN: "An owner that acquires again waits for its own row.",
				ZH: "同一个持有者再次加锁，等的是自己那一行。",
			}},
			{Hazard: api.Operator, Why: api.Text{
				EN: "A holder never checks its row again: if an operator deletes the row, it writes beside the next holder.",
				ZH: "加锁之后不再检查那一行：运维人员删掉它，持有者会和下一个持有者同时写入。",
			}},
			{Hazard: api.Polling, Why: api.Text{
				EN: "Every waiter tries an INSERT every 50 ms, and a free lock is not used until the next try.",
				ZH: "每个等待者每 50 毫秒插入一次；锁释放后，要等到下一次尝试才会被获取。",
			}},
		},
		Tutorial: []api.Figure{{Throughput: 20.1, MedianMS: 152, Remaining: 0}},
	}
}
