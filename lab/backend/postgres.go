package backend

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// PostgresVersion returns the version of the PostgreSQL at the URL.
func PostgresVersion(ctx context.Context, at string) (version string, err error) {
	err = onPostgres(ctx, at, func(conn *pgx.Conn) error {
		version = conn.PgConn().ParameterStatus("server_version")
		return nil
	})
	return version, err
}

func onPostgres(ctx context.Context, at string, do func(*pgx.Conn) error) error {
	conn, err := pgx.Connect(ctx, at)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	return do(conn)
}

// DeletePostgresRows deletes the rows of all tables, which are those of locks. It returns how many there were. A row
// that a transaction has locked stays.
func DeletePostgresRows(ctx context.Context, at string) (rows int64, err error) {
	err = onPostgres(ctx, at, func(conn *pgx.Conn) error {
		if _, err := conn.Exec(ctx, "SET lock_timeout = '1s'"); err != nil {
			return err
		}
		found, _ := conn.Query(ctx, "SELECT format('DELETE FROM %I.%I', schemaname, tablename) FROM pg_tables "+
			"WHERE schemaname NOT IN ('pg_catalog', 'information_schema')")
		statements, err := pgx.CollectRows(found, pgx.RowTo[string]) // this also returns an error of Query
		if err != nil {
			return err
		}
		for _, statement := range statements {
			deleted, err := conn.Exec(ctx, statement)
			const lockNotAvailable = "55P03"
			if refused := new(pgconn.PgError); errors.As(err, &refused) && refused.Code == lockNotAvailable {
				continue
			}
			if err != nil {
				return fmt.Errorf("%s: %w", statement, err)
			}
			rows += deleted.RowsAffected()
		}
		return nil
	})
	return rows, err
}

// EndPostgresSessions ends all other sessions of the URL's user. This frees their row locks and their advisory locks.
// It returns the number of these sessions.
func EndPostgresSessions(ctx context.Context, at string) (sessions int64, err error) {
	err = onPostgres(ctx, at, func(conn *pgx.Conn) error {
		return conn.QueryRow(ctx, "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity "+
			"WHERE usename = current_user AND pid <> pg_backend_pid()").Scan(&sessions)
	})
	return sessions, err
}
