// Package migrations holds the schema, and brings a database up to it.
package migrations

import (
	"context"
	"database/sql"
	"embed"
	"fmt"
	"time"

	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
)

//go:embed *.sql
var files embed.FS

// Up brings the database up to date. Replicas that start at once take turns:
// DDL commits by itself in MySQL, so two at once could each see half a schema.
// The lease lets the others go on when the one that migrates is killed.
func Up(ctx context.Context, db *sql.DB) error {
	turns, err := lock.NewMySQLTableLocker(
		lock.WithTableLeaseDuration(10*time.Second),
		lock.WithTableHeartbeatInterval(2*time.Second),
		lock.WithTableLockTimeout(100*time.Millisecond, 600),
	)
	if err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	provider, err := goose.NewProvider(goose.DialectMySQL, db, files, goose.WithLocker(turns), goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	if _, err := provider.Up(ctx); err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	return nil
}
