// Command get-lock is an adapter for MySQL's GET_LOCK, with github.com/go-sql-driver/mysql.
package main

import (
	"context"
	"database/sql"
	"errors"
	"math"

	_ "github.com/go-sql-driver/mysql"

	"oversell/adapters/library"
	"oversell/api"
	"oversell/locks"
	"oversell/stock"
	"oversell/trial/adapter"
)

func main() {
	db := library.Must(sql.Open("mysql", library.Servers("MYSQL_DSN", "root@tcp(127.0.0.1:3306)/oversell")[0]))
	hello := library.Hello("MySQL GET_LOCK, go-sql-driver/mysql", "1.10.1", "https://dev.mysql.com/doc/refman/8.4/en/locking-functions.html", "mysql")
	// The manual: the lock "is released implicitly when your session terminates (either normally or abnormally)".
	hello.Protects = []api.Hazard{api.Crash}
	hello.Breaks = []adapter.Break{{Hazard: api.HostDeath}}
	library.Serve(hello, &locker{db: db})
}

type locker struct {
	library.NoCard
	db *sql.DB
}

// Acquire takes a connection out of the pool, because the lock belongs to it. The wait has whole
// seconds, as in MySQL's manual.
func (l *locker) Acquire(ctx context.Context, r locks.Request) (*locks.Lock, error) {
	conn, err := l.db.Conn(ctx)
	if err != nil {
		return nil, library.Failed(ctx, r, "mysql", false, err)
	}
	var granted sql.NullBool // NULL: an error, such as a killed statement
	err = conn.QueryRowContext(ctx, "SELECT GET_LOCK(?, ?)", r.Key, math.Ceil(r.Wait.Seconds())).Scan(&granted)
	if err == nil && granted.Bool {
		return library.Lock(ctx, r, func(ctx context.Context) error { return release(ctx, conn, r.Key) }), nil
	}
	_ = conn.Close()
	if err == nil && !granted.Valid {
		return nil, &stock.Unavailable{Backend: "mysql", Err: errors.New("GET_LOCK returned NULL")}
	}
	return nil, library.Failed(ctx, r, "mysql", err == nil, err)
}

func release(ctx context.Context, conn *sql.Conn, key string) error {
	var released sql.NullBool // NULL: no such lock, false: a lock of another connection
	err := conn.QueryRowContext(ctx, "SELECT RELEASE_LOCK(?)", key).Scan(&released)
	if err == nil && !released.Bool {
		err = locks.ErrNotHeld
	}
	return errors.Join(err, conn.Close())
}
