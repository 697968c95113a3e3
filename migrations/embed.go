// Package migrations has the schema of the database as migrations, and applies them.
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

// Up applies the migrations that the database lacks. Replicas that start at the same time
// migrate one after the other: MySQL commits each DDL statement at once, so a second replica
// could see half of the schema. If the migrating replica is killed, its lease expires.
func Up(ctx context.Context, db *sql.DB) error {
	locker, err := lock.NewMySQLTableLocker(
		lock.WithTableLeaseDuration(10*time.Second),
		lock.WithTableHeartbeatInterval(2*time.Second),
		lock.WithTableLockTimeout(100*time.Millisecond, 600),
	)
	if err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	provider, err := goose.NewProvider(goose.DialectMySQL, db, files, goose.WithLocker(locker), goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	if _, err := provider.Up(ctx); err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	return nil
}
