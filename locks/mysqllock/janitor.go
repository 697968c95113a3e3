package mysqllock

import (
	"context"
	"errors"
	"time"

	"gorm.io/gorm"

	"oversell/locks"
)

// Janitor removes the owners from expired rows of db_lock, so that the table shows live holders
// only (tutorial 2.3). No lock depends on Janitor, because an expired row can be taken over.
// Janitor deletes expired rows of db_queue, but no rows of db_lock. A new row of db_lock would
// begin with epoch 1, and old fences would be accepted.
func Janitor(ctx context.Context, db *gorm.DB, every time.Duration) {
	for locks.Work(ctx, every) == nil {
		// If the statement fails, the next one tries again.
		_ = db.WithContext(ctx).Exec(
			"UPDATE db_lock SET owner = NULL WHERE owner IS NOT NULL AND expires_at <= UTC_TIMESTAMP(6)").Error
		_ = reapAll(ctx, &dbRowFair{db: db})
	}
}

func reapAll(ctx context.Context, l *dbRowFair) error {
	var dead []int64
	err := l.db.WithContext(ctx).Raw("SELECT id FROM db_queue WHERE expires_at <= UTC_TIMESTAMP(6)").Scan(&dead).Error
	for _, id := range dead {
		err = errors.Join(err, l.reap(ctx, id))
	}
	return err
}
