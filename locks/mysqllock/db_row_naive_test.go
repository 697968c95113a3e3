package mysqllock

import (
	"context"
	"errors"
	"testing"
	"time"

	"gorm.io/gorm"

	"oversell/locks"
)

func naiveRows(t *testing.T, db *gorm.DB, key string) (n int64) {
	t.Helper()
	if err := db.Raw("SELECT COUNT(*) FROM db_lock_naive WHERE lock_name = ?", key).Scan(&n).Error; err != nil {
		t.Fatal(err)
	}
	return n
}

// TestNaiveFlaws checks that the holder cannot acquire the lock again. Janitor (the task that frees
// expired locks of DBRow) must not free this lock. Without a release, only Clear frees the lock.
func TestNaiveFlaws(t *testing.T) {
	db := database(t, "")
	l, key := DBRowNaive(db), newKey()
	h := acquire(t, l, request(key, "owner", 0, 0))
	if _, err := l.Acquire(t.Context(), request(key, "owner", 200*time.Millisecond, 0)); !errors.Is(err, locks.ErrNotAcquired) {
		t.Errorf("the owner again: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	Janitor(ctx, db, 10*time.Millisecond)
	if naiveRows(t, db, key) != 1 {
		t.Error("the janitor has freed the lock")
	}
	if err := l.(locks.Cleaner).Clear(t.Context(), key); err != nil || naiveRows(t, db, key) != 0 {
		t.Errorf("after Clear: %v, %d rows", err, naiveRows(t, db, key))
	}
	if err := h.Release(t.Context()); !errors.Is(err, locks.ErrNotHeld) {
		t.Errorf("the release of a deleted row: %v", err)
	}
	again := acquire(t, l, request(key, "next", 0, 0))
	if err := again.Release(t.Context()); err != nil || naiveRows(t, db, key) != 0 {
		t.Errorf("after the release: %v, %d rows", err, naiveRows(t, db, key))
	}
}
