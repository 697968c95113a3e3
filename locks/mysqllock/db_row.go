package mysqllock

import (
	"cmp"
	"context"
	"database/sql"
	"time"

	"gorm.io/gorm"

	"oversell/api"
	"oversell/locks"
	"oversell/stock"
)

// DBRow locks with a row of the table db_lock, under a unique key, as corrected in the tutorial (2,
// 2.3). The row expires by the database's clock, so no client's clock matters. A new owner takes
// over the row in one conditional UPDATE. The row's epoch counts the grants, and is the fence.
// Every statement is its own transaction.
//
// DANGER: if the database's clock jumps ahead, a second owner takes over the row of a holder; if it jumps
// back, the row of a dead holder stays for that much longer.
func DBRow(db *gorm.DB, lease time.Duration) locks.Locker {
	return locks.Reentrant(locks.Queue(&dbRow{db, lease}))
}

type dbRow struct {
	db    *gorm.DB
	lease time.Duration
}

func (l *dbRow) Acquire(ctx context.Context, r locks.Request) (*locks.Lock, error) {
	began, owner, lease := time.Now(), locks.Token(r.Owner), cmp.Or(r.Lease, l.lease)
	for {
		asked := time.Now()
		// The end of ctx must not cancel take: the server could grant the row after the clean-up.
		trying, done := locks.CleanUp(ctx)
		epoch, err := l.take(trying, r.Key, owner, lease)
		done()
		if stock.IsContention(err) { // rolled back, because another client has locked the row
			err = nil
		}
		if err != nil || ctx.Err() != nil {
			// After a lost answer or a cancellation, this request may hold the row, so release the row.
			giveUp(ctx, err, lease, func(ctx context.Context) error { return l.release(ctx, r.Key, owner) })
			if ctx.Err() != nil {
				return nil, locks.NotAcquired(ctx, r.Key, r.Wait)
			}
			return nil, &stock.Unavailable{Backend: "mysql", Err: err}
		}
		if epoch > 0 {
			release := func(ctx context.Context) error { return l.release(ctx, r.Key, owner) }
			return locks.NewLock(ctx, locks.Grant{
				Key: r.Key, Owner: r.Owner, Asked: asked, Lease: lease, NoRenew: r.NoRenew, Fence: epoch,
				Renew:        func(ctx context.Context) error { return l.renew(ctx, r.Key, owner, lease) },
				AdvanceFence: func(ctx context.Context, floor int64) (int64, error) { return l.advanceFence(ctx, r.Key, owner, floor) },
				Release:      release, Again: release,
			}), nil
		}
		// MySQL does not notify waiters of a free row, so try again after a random pause.
		if err := locks.SleepRetry(ctx, r, began, time.Millisecond+locks.Jitter(ctx, 4*time.Millisecond)); err != nil {
			return nil, err
		}
	}
}

// giveUp frees what an acquisition has taken that failed with err. Without an answer, MySQL may execute it later.
func giveUp(ctx context.Context, err error, lease time.Duration, free func(context.Context) error) {
	if err != nil && locks.Sent(err) {
		locks.Sweep(ctx, time.Minute+lease, free)
		return
	}
	_ = locks.GiveBack(ctx, time.Time{}, free)
}

// take tries once to take the row. It returns the epoch of the grant, or 0 if the row is held.
func (l *dbRow) take(ctx context.Context, key, owner string, lease time.Duration) (int64, error) {
	epoch, err := l.takeOver(ctx, key, owner, lease)
	if err != nil || epoch > 0 {
		return epoch, err
	}
	// The row is held, or does not exist. Read before the INSERT, because an INSERT of a row that
	// exists would take a shared lock and could deadlock.
	var rows int64
	if err := l.db.WithContext(ctx).Raw("SELECT COUNT(*) FROM db_lock WHERE lock_name = ?", key).Scan(&rows).Error; err != nil || rows > 0 {
		return 0, err
	}
	if err := l.db.WithContext(ctx).Exec("INSERT IGNORE INTO db_lock (lock_name) VALUES (?)", key).Error; err != nil {
		return 0, err
	}
	return l.takeOver(ctx, key, owner, lease)
}

// takeOver takes a free or expired row. LAST_INSERT_ID(x) makes the server send x, the new epoch.
func (l *dbRow) takeOver(ctx context.Context, key, owner string, lease time.Duration) (int64, error) {
	epoch, _, err := lastInsertID(l.exec(ctx, `UPDATE db_lock
		SET owner = ?, epoch = LAST_INSERT_ID(epoch + 1), expires_at = UTC_TIMESTAMP(6) + INTERVAL ? MICROSECOND
		WHERE lock_name = ? AND (owner IS NULL OR expires_at <= UTC_TIMESTAMP(6))`,
		owner, lease.Microseconds(), key))
	return epoch, err
}

// renew and release match the owner token of one grant, so they never change another grant's row.
func (l *dbRow) renew(ctx context.Context, key, owner string, lease time.Duration) error {
	return onOwnRow(ctx, l.db, "UPDATE db_lock SET expires_at = UTC_TIMESTAMP(6) + INTERVAL ? MICROSECOND "+
		"WHERE lock_name = ? AND owner = ? AND expires_at > UTC_TIMESTAMP(6)", lease.Microseconds(), key, owner)
}

func (l *dbRow) release(ctx context.Context, key, owner string) error {
	return onOwnRow(ctx, l.db, "UPDATE db_lock SET owner = NULL "+
		"WHERE lock_name = ? AND owner = ? AND expires_at > UTC_TIMESTAMP(6)", key, owner)
}

// advanceFence raises the epoch above floor. A new row, after a deletion, begins again at epoch 1.
func (l *dbRow) advanceFence(ctx context.Context, key, owner string, floor int64) (int64, error) {
	epoch, found, err := lastInsertID(l.exec(ctx, "UPDATE db_lock SET epoch = LAST_INSERT_ID(GREATEST(epoch, ?) + 1) "+
		"WHERE lock_name = ? AND owner = ? AND expires_at > UTC_TIMESTAMP(6)", floor, key, owner))
	if err == nil && !found {
		err = locks.ErrNotHeld
	}
	return epoch, err
}

func (l *dbRow) exec(ctx context.Context, query string, args ...any) (sql.Result, error) {
	return l.db.Statement.ConnPool.ExecContext(ctx, query, args...)
}

func (l *dbRow) Clear(ctx context.Context, key string) error {
	_, err := l.exec(ctx, "UPDATE db_lock SET owner = NULL WHERE lock_name = ?", key)
	return err
}

func (*dbRow) Card() api.Card {
	return api.Card{
		ID: "db-row", Family: "mysql", Source: "2, 2.3; 002, 004", Scope: api.ScopeShared, Safe: true,
		Core: true, Backends: []string{"mysql"}, Locker: true,
		Lease: true, LeasePerRequest: true, Renews: true, Reentrant: true, Fenced: true,
		Title: api.Text{EN: "A row that is the lock", ZH: "数据库锁表"},
		Summary: api.Text{
			EN: "A row under a unique key names the owner. It expires by the database's clock, and one UPDATE takes it over.",
			ZH: "唯一键的一行记录持有者，按数据库时钟过期，用一条 UPDATE 接管。",
		},
		When: api.Text{
			EN: "Choose it if you need a lock with a lease, and have only a database. If the work fits into one transaction, `for-update` is simpler. The database's clock must never jump.",
			ZH: "需要带租期的锁，又只有数据库时选它。业务能放进一个事务，`for-update` 更简单。数据库的时钟不能跳变。",
		},
		Protects: []api.Hazard{api.Race, api.ReplicaRace, api.Crash, api.Overrun, api.Nesting, api.LostReply, api.Operator, api.Starved, api.RenewalReply},
		Breaks: []api.Break{
			{Hazard: api.Pause, Why: api.Text{
				EN: "A holder that sleeps past its lease still writes when it wakes up, unless the write is fenced.",
				ZH: "持有者停顿超过租期，醒来后照样写入，除非写入带栅栏号。",
			}},
			{Hazard: api.Polling, Why: api.Text{
				EN: "A database does not notify waiters: one waiter of each process tries again every few milliseconds.",
				ZH: "数据库不会通知等待者：每个进程有一个等待者每隔几毫秒重试一次。",
			}},
		},
		Tutorial: []api.Figure{{Note: api.Text{EN: "without expiry, retry after 50 ms", ZH: "没有过期时间，50 毫秒后重试"}, Throughput: 20.1, MedianMS: 152, Remaining: 0}},
	}
}
