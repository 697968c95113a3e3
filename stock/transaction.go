package stock

import (
	"context"
	"fmt"
	"time"

	"gorm.io/gorm"
)

// writeTimeout limits a write that continues after its caller's context has ended.
const writeTimeout = 5 * time.Second

// uncancelled returns a context that outlives ctx, because MySQL completes a statement even if the
// client has gone. If the lock were released then, the write could follow the next holder's read.
func uncancelled(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), writeTimeout)
}

// transaction calls write, then committing, and then commits, even if ctx ends meanwhile. If
// committing fails, transaction rolls back. The outcome is unknown only if COMMIT gets no answer,
// or an error of a server that shuts down. After any other error, no write has happened.
func transaction(ctx context.Context, db *gorm.DB, committing func() error, write func(*gorm.DB) error) error {
	if ctx.Err() != nil {
		return NothingWritten(ctx, ctx.Err())
	}
	free, cancel := uncancelled(ctx)
	defer cancel()
	sent, refused := false, error(nil)
	err := db.WithContext(free).Transaction(func(tx *gorm.DB) error {
		if err := write(tx); err != nil {
			return err
		}
		refused = committing()
		sent = refused == nil
		return refused
	})
	switch {
	case refused != nil:
		return refused
	case sent:
		return Committed(err)
	case free.Err() != nil:
		// Nobody cancelled: the writes waited for other transactions or for the server.
		return &Unavailable{Backend: "mysql", Err: fmt.Errorf("no answer within %v: %w", writeTimeout, err)}
	}
	return NothingWritten(context.WithoutCancel(ctx), err)
}

// rows returns the rows of a query. They are not nil if there are none.
func rows[T any](ctx context.Context, db *gorm.DB, query string, args ...any) ([]T, error) {
	found := []T{}
	err := db.WithContext(ctx).Raw(query, args...).Scan(&found).Error
	return found, NothingWritten(ctx, err)
}

// first returns the row with the id, or the error missing.
func first[T any](ctx context.Context, db *gorm.DB, id int64, missing error, query string) (row T, err error) {
	found, err := rows[T](ctx, db, query, id)
	switch {
	case err != nil:
		return row, err
	case len(found) == 0:
		return row, missing
	}
	return found[0], nil
}

// reset executes statements in one transaction. They name their values, such as @id.
func reset(ctx context.Context, db *gorm.DB, values map[string]any, statements ...string) error {
	return NothingWritten(ctx, db.WithContext(ctx).Transaction(func(tx *gorm.DB) error {
		for _, statement := range statements {
			if err := tx.Exec(statement, values).Error; err != nil {
				return err
			}
		}
		return nil
	}))
}
