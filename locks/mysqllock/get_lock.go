package mysqllock

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"time"

	"gorm.io/gorm"

	"oversell/api"
	"oversell/locks"
	"oversell/stock"
)

// GetLock uses MySQL's named lock (manual: Locking Functions). The lock belongs to a connection, so
// each holder and each waiter uses one connection. When the connection ends, the lock is free.
// A named lock has no lease and no fence.
//
// DANGER: the lock exists on one server only. A second cluster node or master does not have the
// lock (the command oversell break galera get-lock shows this), and a fail-over loses it. If the
// holder's machine dies (oversell break host-death get-lock), the server keeps the lock until TCP
// times out, which takes hours. Waiters behind a load balancer are unsafe. They end a wait with KILL QUERY, which may
// reach another server. There, the same connection number belongs to another client.
//
// The sale is written on the connection that holds the lock. If the server has ended this
// connection, and granted the lock to another connection, the write fails.
//
// locks.Queue lets one request of each replica and key wait in MySQL, on one connection.
func GetLock(db *gorm.DB) locks.Locker {
	return locks.Reentrant(locks.Queue(&getLock{db}))
}

type getLock struct{ db *gorm.DB }

const (
	// lockName computes a name of 49 characters from the schema and the key. MySQL allows 64, and
	// names are global on the server. The hash is SHA2, because MySQL 9.6 no longer has SHA1.
	lockName = "CONCAT('oversell:', LEFT(SHA2(CONCAT(DATABASE(), ':', ?), 256), 40))"
	// longestWait limits one GET_LOCK call, because the driver waits only 10 s (stock.Open).
	longestWait = 5 * time.Second
	// oneTry is the time that a request without a wait has for a connection and an answer. It is
	// also the time in which a statement must end after its KILL QUERY.
	oneTry = 2 * time.Second
)

func (l *getLock) Acquire(ctx context.Context, r locks.Request) (*locks.Lock, error) {
	began := time.Now()
	// A request without a wait also needs time to get a connection and an answer.
	waiting, cancel := context.WithTimeout(ctx, max(r.Wait, oneTry))
	defer cancel()
	for {
		p, err := l.pin(waiting, r.Key)
		granted := false
		if err == nil {
			if r.Wait > 0 { // traced early, because the server does not report the queueing
				locks.Trace(ctx, api.Queued, r.Key, r.Owner, 0)
			}
			granted, err = p.wait(waiting, r.Wait-time.Since(began))
		}
		switch {
		case granted && ctx.Err() == nil:
			return locks.NewLock(ctx, locks.Grant{Key: r.Key, Owner: r.Owner, Asked: began, Verify: p.verify, Session: p.conn, Release: p.release}), nil
		case p != nil && err == nil && !granted:
			p.giveBack()
		case p != nil:
			p.discard()
		}
		switch {
		case errors.Is(err, driver.ErrBadConn) && waiting.Err() == nil: // the connection had ended in the pool; no request was sent
		case err == nil, errors.Is(err, errLeft), waiting.Err() != nil:
			return nil, locks.NotAcquired(ctx, r.Key, r.Wait)
		default:
			return nil, &stock.Unavailable{Backend: "mysql", Err: err}
		}
	}
}

// pin takes a connection out of the pool. At most half of the connections are pinned
// (stock.Enter), because each holder needs another one to read the stock.
func (l *getLock) pin(ctx context.Context, key string) (*pinned, error) {
	pool, err := l.db.DB()
	if err != nil {
		return nil, fmt.Errorf("mysql pool: %w", err)
	}
	leave, err := stock.Enter(ctx, l.db)
	if err != nil {
		return nil, err
	}
	conn, err := pool.Conn(ctx)
	if err != nil {
		leave()
		return nil, err
	}
	return &pinned{pool: pool, conn: conn, key: key, unpin: leave}, nil
}

type pinned struct {
	pool  *sql.DB
	conn  *sql.Conn
	id    uint64 // CONNECTION_ID(), set by the first GET_LOCK
	key   string
	unpin func()
}

func (p *pinned) wait(ctx context.Context, wait time.Duration) (granted bool, err error) {
	try := p.conn.QueryRowContext(ctx, "SELECT COALESCE(GET_LOCK("+lockName+", 0), 0), CONNECTION_ID()", p.key)
	if err := try.Scan(&granted, &p.id); err != nil || granted {
		return granted, err
	}
	until := time.Now().Add(wait)
	waiting, leave := context.WithDeadline(ctx, until)
	defer leave()
	for left := wait; left > 0 && err == nil && !granted; left = time.Until(until) {
		granted, err = p.queue(waiting, int((min(left, longestWait)+time.Second-1)/time.Second))
	}
	return granted, err
}

// errLeft means that a waiter has left the server's queue, and that its connection must be ended.
var errLeft = errors.New("left the queue")

// queue waits for the lock in the server, and returns only after its statement has ended. MySQL
// counts in seconds, so KILL QUERY ends a shorter wait, or the wait of a cancelled request.
//
// DANGER: ending only the connection is not enough. Its waiter stays in the server's queue until
// the server's next check, for up to a second. The waiter may get the lock, and block others.
func (p *pinned) queue(ctx context.Context, seconds int) (granted bool, err error) {
	asking, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	stays := context.AfterFunc(ctx, func() {
		time.AfterFunc(oneTry, cancel) // in case the server does not answer
		_, _ = p.pool.ExecContext(asking, fmt.Sprintf("KILL QUERY %d", p.id))
	})
	granted, err = p.call(asking, "GET_LOCK("+lockName+", ?)", p.key, seconds)
	if !stays() { // KILL QUERY was sent, and may end the next query of this connection
		return false, errLeft
	}
	return granted, err
}

// verify returns ErrNotHeld if this connection does not hold the lock any more.
func (p *pinned) verify(ctx context.Context) error {
	held, err := p.call(ctx, "COALESCE(IS_USED_LOCK("+lockName+") = CONNECTION_ID(), 0)", p.key)
	if err != nil {
		return fmt.Errorf("its connection has ended: %w", err)
	}
	if !held {
		return locks.ErrNotHeld
	}
	return nil
}

// release returns the connection to the pool only if the server has confirmed the release.
func (p *pinned) release(ctx context.Context) error {
	released, err := p.call(ctx, "RELEASE_LOCK("+lockName+")", p.key)
	switch {
	case err != nil:
		p.discard()
		return fmt.Errorf("%w: its connection has ended: %w", locks.ErrNotHeld, err)
	case !released:
		p.discard()
		return locks.ErrNotHeld
	}
	p.giveBack()
	return nil
}

// call calls a function of MySQL that returns 1 for yes, 0 for no, and NULL for an error.
func (p *pinned) call(ctx context.Context, function string, args ...any) (yes bool, err error) {
	var answer sql.NullInt64
	if err := p.conn.QueryRowContext(ctx, "SELECT "+function, args...).Scan(&answer); err != nil {
		return false, err
	}
	if !answer.Valid {
		return false, fmt.Errorf("%w: %s is NULL", stock.ErrInterrupted, function)
	}
	return answer.Int64 == 1, nil
}

func (p *pinned) giveBack() {
	_ = p.conn.Close()
	p.unpin()
}

// discard ends the connection, and with it the lock. DANGER: Close alone would return the
// connection to the pool, and its next user would hold a lock that this user never requested.
func (p *pinned) discard() {
	_ = p.conn.Raw(func(any) error { return driver.ErrBadConn })
	p.giveBack()
}

// Clear ends the holder's connection. MySQL cannot free another connection's lock otherwise.
func (l *getLock) Clear(ctx context.Context, key string) error {
	var holder sql.NullInt64
	err := l.db.WithContext(ctx).Raw("SELECT IS_USED_LOCK("+lockName+")", key).Row().Scan(&holder)
	if err != nil || !holder.Valid {
		return err
	}
	return l.db.WithContext(ctx).Exec(fmt.Sprintf("KILL %d", holder.Int64)).Error
}

func (*getLock) Card() api.Card {
	return api.Card{
		ID: "get-lock", Family: "mysql", Source: "MySQL, Locking Functions", Scope: api.ScopeShared, Safe: true,
		Backends: []string{"mysql"}, Locker: true, Reentrant: true,
		Title: api.Text{EN: "GET_LOCK, MySQL's named lock", ZH: "MySQL 命名锁 GET_LOCK"},
		Summary: api.Text{
			EN: "The server grants the lock to a connection, and queues the waiters. The lock is released when the connection ends.",
			ZH: "锁由一个数据库连接持有，等待者在服务器端排队；连接断开，锁就释放。",
		},
		When: api.Text{
			EN: "Choose it for work outside a transaction, if there is a single MySQL server. A cluster or a fail-over breaks it: then use `etcd`.",
			ZH: "业务不在一个事务里，而且只有一台 MySQL 时选它。数据库集群或主从切换会让它失效，那就用 `etcd`。",
		},
		Protects: []api.Hazard{
			api.Race, api.ReplicaRace, api.Crash, api.Overrun, api.Pause, api.DeadWaiter, api.LostReply, api.Nesting,
			api.Operator, api.OperatorAtWrite,
		},
		Breaks: []api.Break{staysConnected()},
	}
}
