// Package migrations has the migrations of the database schema, and applies them.
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

// Up applies the missing migrations. A lock lets only one replica apply them at a time, because
// MySQL commits each DDL statement at once. If the replica is killed, its lock expires. It changes nothing and
// returns ErrForeign if a table of another program is in the way.
func Up(ctx context.Context, db *sql.DB) error {
	if err := check(ctx, db); err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
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
