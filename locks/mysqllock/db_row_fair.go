package mysqllock

import (
	"cmp"
	"context"
	"errors"
	"time"

	"gorm.io/gorm"

	"oversell/api"
	"oversell/locks"
	"oversell/stock"
)

// DBRowFair locks with a queue in a table (document 002). Each waiter of any replica inserts a row.
// The row with the lowest id holds the lock, and the id is the fence. The next waiter deletes a row
// that has expired by the database's clock, so a dead waiter delays the queue by at most one lease.
// Every statement commits by itself and locks rows by primary key, so there are no gap locks or
// deadlocks.
func DBRowFair(db *gorm.DB, lease time.Duration) locks.Locker {
	// locks.Queue is not used. With locks.Queue, most requests would wait in memory, and requests
	// of different replicas would have no common order.
	return locks.Reentrant(&dbRowFair{db, lease})
}

type dbRowFair struct {
	db    *gorm.DB
	lease time.Duration
}

// The nth waiter of the queue reads the queue every n times readPause, with n limited to
// longestQueue. A hundred waiters then send 1400 reads per second instead of 20000.
const (
	readPause    = 5 * time.Millisecond
	longestQueue = 20
)

type queueRow struct {
	key, token string // the token names this row only
	owner      string
	lease      time.Duration
	id         int64     // 0 means that there is no row
	asked      time.Time // when the last request was sent that set the lease
}

func (l *dbRowFair) Acquire(ctx context.Context, r locks.Request) (*locks.Lock, error) {
	began := time.Now()
	p := &queueRow{key: r.Key, token: locks.Token(r.Owner), owner: r.Owner, lease: cmp.Or(r.Lease, l.lease)}
	for {
		ahead, err := l.advance(ctx, p)
		if stock.IsContention(err) { // rolled back, because another client has locked the row
			ahead, err = 1, nil
		}
		if err == nil && ahead == 0 && ctx.Err() == nil {
			release := func(ctx context.Context) error { return l.leave(ctx, p.id) }
			return locks.NewLock(ctx, locks.Grant{
				Key: r.Key, Owner: r.Owner, Asked: p.asked, Lease: p.lease, NoRenew: r.NoRenew, Fence: p.id,
				Renew:   func(ctx context.Context) error { return l.renew(ctx, p.id, p.lease) },
				Release: release, Again: release,
			}), nil
		}
		switch {
		case err == nil:
			if err = locks.SleepRetry(ctx, r, began, min(time.Duration(ahead)*readPause, p.lease/3)); err == nil {
				continue
			}
		case ctx.Err() != nil:
			err = locks.NotAcquired(ctx, r.Key, r.Wait)
		default:
			err = &stock.Unavailable{Backend: "mysql", Err: err}
		}
		l.quit(ctx, p, err)
		return nil, err
	}
}

// advance returns how many rows are ahead, at most longestQueue. With 0, the waiter has the lock.
func (l *dbRowFair) advance(ctx context.Context, p *queueRow) (ahead int, err error) {
	for {
		if err := l.stay(ctx, p); err != nil {
			return 0, err
		}
		rows, err := l.read(ctx, p)
		switch {
		case err != nil:
			return 0, err
		case len(rows) == 0 || rows[0].ID != p.id:
			p.id = 0 // the row was deleted after its expiry, so join again, at the end
		case len(rows) == 1:
			return 0, nil
		case !rows[1].Dead:
			return len(rows) - 1, nil
		default:
			if err := l.reap(ctx, rows[1].ID); err != nil {
				return 0, err
			}
		}
	}
}

// stay inserts the waiter's row if there is none. It renews the row after a third of its lease.
func (l *dbRowFair) stay(ctx context.Context, p *queueRow) error {
	asked := time.Now()
	if p.id != 0 && asked.Sub(p.asked) < p.lease/3 {
		return nil
	}
	if p.id != 0 {
		if err := l.renew(ctx, p.id, p.lease); !errors.Is(err, locks.ErrNotHeld) {
			if err == nil {
				p.asked = asked
			}
			return err
		}
	}
	// The end of ctx must not cancel the INSERT: its row could then block the queue for a lease.
	trying, done := locks.CleanUp(ctx)
	defer done()
	asked, p.id = time.Now(), 0
	id, err := l.join(trying, p)
	if err != nil {
		return err
	}
	p.id, p.asked = id, asked
	locks.Trace(ctx, api.Queued, p.key, p.owner, p.id)
	return nil
}

// join inserts the waiter's row. MySQL assigns an id before the row is visible. So row 8 could hold
// the lock when row 7 appears ahead of it. To prevent this, join locks the queue's row of
// db_turnstile until the new row is committed. The ids of one queue then appear in order.
func (l *dbRowFair) join(ctx context.Context, p *queueRow) (int64, error) {
	const insert = `INSERT INTO db_queue (lock_name, owner, expires_at)
		SELECT lock_name, ?, UTC_TIMESTAMP(6) + INTERVAL ? MICROSECOND FROM db_turnstile WHERE lock_name = ? FOR UPDATE`
	pool := l.db.Statement.ConnPool
	for {
		id, found, err := lastInsertID(pool.ExecContext(ctx, insert, p.token, p.lease.Microseconds(), p.key))
		if err != nil || found {
			return id, err
		}
		// There is no row of db_turnstile for this key yet.
		if _, err := pool.ExecContext(ctx, "INSERT IGNORE INTO db_turnstile (lock_name) VALUES (?)", p.key); err != nil {
			return 0, err
		}
	}
}

type rowState struct {
	ID   int64
	Dead bool
}

// read returns the waiter's row and the rows ahead of it, newest first. It locks no row.
func (l *dbRowFair) read(ctx context.Context, p *queueRow) (rows []rowState, err error) {
	err = l.db.WithContext(ctx).Raw(`SELECT id, expires_at <= UTC_TIMESTAMP(6) AS dead FROM db_queue
		WHERE lock_name = ? AND id <= ? ORDER BY lock_name DESC, id DESC LIMIT ?`, p.key, p.id, 1+longestQueue).Scan(&rows).Error
	return rows, err
}

// renew also extends an expired row, because no other waiter has the lock while the row exists.
func (l *dbRowFair) renew(ctx context.Context, id int64, lease time.Duration) error {
	return onOwnRow(ctx, l.db, "UPDATE db_queue SET expires_at = UTC_TIMESTAMP(6) + INTERVAL ? MICROSECOND WHERE id = ?", lease.Microseconds(), id)
}

func (l *dbRowFair) leave(ctx context.Context, id int64) error {
	return onOwnRow(ctx, l.db, "DELETE FROM db_queue WHERE id = ?", id)
}

// reap deletes an expired row. If the owner renews the row at this moment, only the statement that
// locks the row first has an effect.
func (l *dbRowFair) reap(ctx context.Context, id int64) error {
	return l.db.WithContext(ctx).Exec("DELETE FROM db_queue WHERE id = ? AND expires_at <= UTC_TIMESTAMP(6)", id).Error
}

// quit deletes the waiter's row, even if the INSERT got no answer, lest it block later waiters for
// a lease. If the server does not answer, quit repeats the deletion in the background.
func (l *dbRowFair) quit(ctx context.Context, p *queueRow, why error) {
	if p.id != 0 {
		_ = locks.GiveBack(ctx, time.Now().Add(p.lease), func(ctx context.Context) error { return l.leave(ctx, p.id) })
		return
	}
	giveUp(ctx, why, p.lease, func(ctx context.Context) error {
		// The INSERT may still run in the server, even if its connection has ended. Until the
		// INSERT ends, it locks the queue's row of db_turnstile, so wait for that row.
		if err := l.db.WithContext(ctx).Exec("SELECT lock_name FROM db_turnstile WHERE lock_name = ? FOR UPDATE", p.key).Error; err != nil {
			return err
		}
		return l.remove(ctx, "lock_name = ? AND owner = ?", p.key, p.token)
	})
}

func (l *dbRowFair) Clear(ctx context.Context, key string) error {
	if err := l.remove(ctx, "lock_name = ?", key); !errors.Is(err, locks.ErrNotHeld) {
		return err
	}
	return nil
}

// remove reads the rows, and then deletes each row by its id. A DELETE by key would lock the gaps
// between the rows, and could deadlock with a DELETE by id. Without such a row, it returns ErrNotHeld.
func (l *dbRowFair) remove(ctx context.Context, where string, args ...any) error {
	var ids []int64
	if err := l.db.WithContext(ctx).Raw("SELECT id FROM db_queue WHERE "+where, args...).Scan(&ids).Error; err != nil {
		return err
	}
	if len(ids) == 0 {
		return locks.ErrNotHeld
	}
	for _, id := range ids {
		if err := l.leave(ctx, id); err != nil && !errors.Is(err, locks.ErrNotHeld) {
			return err
		}
	}
	return nil
}

func (*dbRowFair) Card() api.Card {
	return api.Card{
		ID: "db-row-fair", Family: "mysql", Source: "002", Scope: api.ScopeShared, Safe: true,
		Backends: []string{"mysql"}, Locker: true,
		Lease: true, LeasePerRequest: true, Renews: true, Reentrant: true, Fenced: true, Fair: true,
		Title: api.Text{EN: "A queue in a table", ZH: "数据库排队表（公平锁）"},
		Summary: api.Text{
			EN: "Each waiter inserts a row, and the row with the lowest id holds the lock: first come, first served, over all replicas.",
			ZH: "每个等待者插入一行，编号最小的持有锁：跨所有副本先来先得。",
		},
		When: api.Text{
			EN: "Choose it if all replicas must get the lock in order of arrival, and you have only a database. Many waiters load it with reads. The database's clock must never jump, as for `db-row`.",
			ZH: "需要跨副本的公平锁，又只有数据库时选它。等待者一多，查询会加重数据库的负担。和 `db-row` 一样，数据库的时钟不能跳变。",
		},
		Protects: []api.Hazard{
			api.Race, api.ReplicaRace, api.Crash, api.Overrun, api.DeadWaiter, api.LostReply, api.Nesting,
			api.Operator, api.Starved, api.RenewalReply,
		},
		Breaks: []api.Break{
			{Hazard: api.Pause, Why: api.Text{
				EN: "A holder that sleeps past its lease still writes when it wakes up, unless the write is fenced.",
				ZH: "持有者停顿超过租期，醒来后照样写入，除非写入带栅栏号。",
			}},
			{Hazard: api.Polling, Why: api.Text{
				EN: "Every waiter reads the queue again and again: the first in the queue every 5 ms, the twentieth every 100 ms.",
				ZH: "每个等待者都在反复查询数据库：排第一的每 5 毫秒一次，第二十个每 100 毫秒一次。",
			}},
		},
	}
}
