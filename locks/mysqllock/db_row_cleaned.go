package mysqllock

import (
	"cmp"
	"context"
	"errors"
	"os"
	"time"

	"gorm.io/gorm"

	"oversell/api"
	"oversell/locks"
	"oversell/stock"
)

// DBRowCleaned is DBRowNaive with the owner's columns (tutorial 2), and with the job of tutorial
// 2.3: CleanRows deletes rows that are older than their limit, so the row of a dead holder does not
// stay. The limit is the lease of the request. lease is the default limit.
func DBRowCleaned(db *gorm.DB, lease time.Duration) locks.Locker {
	server, _ := os.Hostname() // only for people who read the table
	return locks.Reentrant(&dbRowCleaned{db, server, lease})
}

type dbRowCleaned struct {
	db     *gorm.DB
	server string
	lease  time.Duration
}

func (l *dbRowCleaned) Acquire(ctx context.Context, r locks.Request) (*locks.Lock, error) {
	thread, limit := locks.Token(r.Owner), cmp.Or(r.Lease, l.lease)
	for began := time.Now(); ; {
		asked := time.Now()
		// ctx does not cancel the INSERT, because the server would still execute it.
		trying, done := locks.CleanUp(ctx)
		id, err := l.insert(trying, r.Key, thread, limit)
		done()
		if err != nil || ctx.Err() != nil {
			// The row names its owner. So it can be deleted even if the answer to the INSERT was lost.
			giveUp(ctx, err, limit, func(ctx context.Context) error {
				return l.remove(ctx, "lock_name = ? AND thread_name = ?", r.Key, thread)
			})
			if ctx.Err() != nil {
				return nil, locks.NotAcquired(ctx, r.Key, r.Wait)
			}
			return nil, &stock.Unavailable{Backend: "mysql", Err: err}
		}
		if id > 0 {
			release := func(ctx context.Context) error { return l.remove(ctx, "id = ?", id) }
			// DANGER: the Grant has no Lease, so a holder does not notice that the job has deleted its row.
			// It works at the same time as the next holder. Each row has its own id, so the DELETE by id
			// then finds nothing, and does not free the next holder's lock.
			return locks.NewLock(ctx, locks.Grant{Key: r.Key, Owner: r.Owner, Asked: asked, Release: release, Again: release}), nil
		}
		if err := locks.SleepRetry(ctx, r, began, naivePause); err != nil {
			return nil, err
		}
	}
}

// insert returns the new row's id, or 0 if the lock is held.
func (l *dbRowCleaned) insert(ctx context.Context, key, thread string, limit time.Duration) (int64, error) {
	id, _, err := lastInsertID(l.db.Statement.ConnPool.ExecContext(ctx, `INSERT INTO db_lock_cleaned
		(lock_name, class_name, method_name, server_name, thread_name, create_time, max_age)
		VALUES (?, 'mysqllock.dbRowCleaned', 'Acquire', ?, ?, NOW(6), ?)`, key, l.server, thread, limit.Microseconds()))
	if isHeld(err) {
		return 0, nil
	}
	return id, err
}

func (l *dbRowCleaned) remove(ctx context.Context, where string, args ...any) error {
	return deleteOwnRow(ctx, l.db, "DELETE FROM db_lock_cleaned WHERE "+where, args...)
}

func (l *dbRowCleaned) Clear(ctx context.Context, key string) error {
	if err := l.remove(ctx, "lock_name = ?", key); !errors.Is(err, locks.ErrNotHeld) {
		return err
	}
	return nil
}

// CleanRows is the job: it deletes the rows that are older than their limit, again and again. Every
// replica runs it. DANGER: an old row does not mean that its holder is dead. The holder may be slow.
func CleanRows(ctx context.Context, db *gorm.DB, every time.Duration) {
	for locks.Work(ctx, every) == nil {
		// Delete by id, because a DELETE by age would lock all rows. If a statement fails, the next
		// one tries again.
		var old []int64
		db.WithContext(ctx).Raw("SELECT id FROM db_lock_cleaned WHERE create_time <= NOW(6) - INTERVAL max_age MICROSECOND").Scan(&old)
		for _, id := range old {
			_ = (&dbRowCleaned{db: db}).remove(ctx, "id = ?", id)
		}
	}
}

func (*dbRowCleaned) Card() api.Card {
	return api.Card{
		ID: "db-row-cleaned", Family: "mysql", Source: "2, 2.3; 004", Scope: api.ScopeShared, Safe: true,
		Backends: []string{"mysql"}, Locker: true, Slow: true,
		Lease: true, LeasePerRequest: true, Unchecked: true, Reentrant: true,
		Title: api.Text{EN: "INSERT to lock, and a job that deletes old rows", ZH: "插入加锁，定时任务清理超时的行"},
		Summary: api.Text{
			EN: "The row names its owner and has the time of the grant; every second, a job deletes the rows that are older than the lease.",
			ZH: "行里记录持有者和加锁时间，定时任务每秒删除超过租期的行。",
		},
		When: api.Text{
			EN: "Not for production: the job also deletes the row of a slow holder, and two requests write. Use `db-row`, which renews its lease.",
			ZH: "不要用于生产环境：持有者只是慢，行也会被清理，两个请求就同时写入。请改用会续期的 `db-row`。",
		},
		Protects: []api.Hazard{api.Race, api.ReplicaRace, api.Crash, api.LostReply, api.Nesting, api.ForeignUnlock},
		Breaks: []api.Break{
			{Hazard: api.Overrun, Why: api.Text{
				EN: "The job cannot tell a slow holder from a dead one: it deletes the row of a holder that still works, and the next INSERT succeeds.",
				ZH: "定时任务分不清持有者是慢还是死：它删掉仍在工作的持有者的行，下一个插入就会成功。",
			}},
			{Hazard: api.Pause, Why: api.Text{
				EN: "A holder that is paused until the job has deleted its row still writes when it goes on.",
				ZH: "持有者停顿期间，行被定时任务删除，醒来后照样写入。",
			}},
			{Hazard: api.Starved, Why: api.Text{
				EN: "A holder that got no processor until the job has deleted its row works on, and writes what is outdated by then.",
				ZH: "持有者没有分到 CPU，行被定时任务删除，之后它继续工作，写入早已过时的数据。",
			}},
			{Hazard: api.Operator, Why: api.Text{
				EN: "A holder never checks its row again: if an operator deletes the row, it writes beside the next holder.",
				ZH: "加锁之后不再检查那一行：运维人员删掉它，持有者会和下一个持有者同时写入。",
			}},
			{Hazard: api.Polling, Why: api.Text{
				EN: "Every waiter tries an INSERT every 50 ms.",
				ZH: "每个等待者每 50 毫秒插入一次。",
			}},
		},
	}
}
