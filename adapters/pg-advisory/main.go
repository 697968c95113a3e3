// Command pg-advisory is an adapter for PostgreSQL's advisory locks, with github.com/jackc/pgx. Its
// argument says how it connects and locks:
//
//	(none)     a lock of the session, directly
//	pgbouncer  the same through a pooler in transaction mode, which does not support it
//	xact       a lock of a transaction, through the pooler
package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"hash/fnv"
	"os"
	"strings"

	_ "github.com/jackc/pgx/v5/stdlib"

	"oversell/adapters/library"
	"oversell/api"
	"oversell/locks"
	"oversell/stock"
	"oversell/trial/adapter"
)

func main() {
	mode := strings.Join(os.Args[1:], " ")
	variable, name := "POSTGRES_URL", "pg_advisory_lock, pgx"
	switch mode {
	case "":
	case "pgbouncer":
		variable, name = "PGBOUNCER_URL", "pg_advisory_lock, pgbouncer, pgx"
	case "xact":
		variable, name = "PGBOUNCER_URL", "pg_advisory_xact_lock, pgbouncer, pgx"
	default:
		fmt.Fprintf(os.Stderr, "pg-advisory: no mode %q: there are pgbouncer and xact\n", mode)
		os.Exit(2)
	}
	// The mode exec prepares no statements: https://pkg.go.dev/github.com/jackc/pgx/v5#hdr-PgBouncer
	url := library.Servers(variable, "postgres://oversell@127.0.0.1:5432/oversell?sslmode=disable")[0] + "&default_query_exec_mode=exec"
	db := library.Must(sql.Open("pgx", url))
	hello := library.Hello(name, "5.12.0", "https://www.postgresql.org/docs/15/explicit-locking.html#ADVISORY-LOCKS", "postgres")
	if mode != "pgbouncer" { // https://www.pgbouncer.org/features.html: session-level advisory locks are not supported
		// The manual: the lock "is held until explicitly released or the session ends".
		hello.Protects = []api.Hazard{api.Crash}
		hello.Breaks = []adapter.Break{{Hazard: api.HostDeath}}
	}
	library.Serve(hello, &locker{db: db, xact: mode == "xact"})
}

type locker struct {
	library.NoCard
	db   *sql.DB
	xact bool
}

// session is a connection or a transaction.
type session interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// Acquire takes a connection out of the pool, because the lock belongs to it.
func (l *locker) Acquire(ctx context.Context, r locks.Request) (*locks.Lock, error) {
	conn, err := l.db.Conn(ctx)
	if err != nil {
		return nil, library.Failed(ctx, r, "postgres", false, err)
	}
	var holder session = conn
	release := func(ctx context.Context) error { return unlock(ctx, conn, r.Key) }
	suffix := "lock"
	if l.xact {
		suffix = "xact_lock"
		tx, err := conn.BeginTx(context.WithoutCancel(ctx), nil) // it lasts longer than the acquisition
		if err != nil {
			return nil, errors.Join(library.Failed(ctx, r, "postgres", false, err), conn.Close())
		}
		holder, release = tx, func(context.Context) error { return tx.Rollback() }
	}
	acquired, err := acquire(ctx, holder, suffix, r)
	if err == nil && acquired {
		return library.Lock(ctx, r, func(ctx context.Context) error { return errors.Join(release(ctx), conn.Close()) }), nil
	}
	if tx, ok := holder.(*sql.Tx); ok {
		_ = tx.Rollback()
	}
	_ = conn.Close()
	return nil, library.Failed(ctx, r, "postgres", err == nil, err)
}

func acquire(ctx context.Context, holder session, suffix string, r locks.Request) (acquired bool, err error) {
	if r.Wait == 0 {
		err = holder.QueryRowContext(ctx, "SELECT pg_try_advisory_"+suffix+"($1)", id(r.Key)).Scan(&acquired)
		return acquired, err
	}
	waiting, cancel := context.WithTimeout(ctx, r.Wait) // its end cancels the statement
	defer cancel()
	_, err = holder.ExecContext(waiting, "SELECT pg_advisory_"+suffix+"($1)", id(r.Key))
	return err == nil, err
}

func unlock(ctx context.Context, conn session, key string) error {
	var released bool // false, with a warning: a lock of another session
	err := conn.QueryRowContext(ctx, "SELECT pg_advisory_unlock($1)", id(key)).Scan(&released)
	switch {
	case err != nil:
		return &stock.Unavailable{Backend: "postgres", Err: err}
	case !released:
		return locks.ErrNotHeld
	}
	return nil
}

// id returns the number that stands for the key: PostgreSQL's keys have 64 bits.
func id(key string) int64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(key))
	return int64(h.Sum64()) //nolint:gosec // the same bits
}
