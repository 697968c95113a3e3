package mysqllock

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"oversell/locks"
)

// TestCleanRows checks that the job deletes the row of a holder that still works beyond its limit,
// and no younger row. The late DELETE by id must not free the next holder's lock.
func TestCleanRows(t *testing.T) {
	db := database(t, "")
	l, late, young := DBRowCleaned(db, time.Minute), newKey(), newKey()
	first := acquire(t, l, request(late, "first", 0, 100*time.Millisecond))
	other := acquire(t, l, request(young, "other", 0, 0))
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	if _, err := l.Acquire(ctx, request(late, "second", 200*time.Millisecond, 0)); !errors.Is(err, locks.ErrNotAcquired) {
		t.Errorf("without the job: %v", err)
	}
	go CleanRows(ctx, db, 10*time.Millisecond)
	second := acquire(t, l, request(late, "second", 20*time.Second, 0))
	if err := first.Verify(); err != nil {
		t.Errorf("the first holder noticed its loss: %v", err)
	}
	if err := first.Release(ctx); !errors.Is(err, locks.ErrNotHeld) {
		t.Errorf("the late release: %v", err)
	}
	for _, h := range []*locks.Lock{second, other} {
		if err := h.Release(ctx); err != nil {
			t.Errorf("%s: %v", h.Owner(), err)
		}
	}
}

// TestCleanedOwner checks that the row names its owner, as in the tutorial's table.
func TestCleanedOwner(t *testing.T) {
	db := database(t, "")
	key := newKey()
	acquire(t, DBRowCleaned(db, time.Minute), request(key, "owner", 0, 0))
	var row struct {
		ClassName, MethodName, ServerName, ThreadName string
		CreateTime                                    time.Time
		Desc                                          *string
	}
	if err := db.Raw("SELECT * FROM db_lock_cleaned WHERE lock_name = ?", key).Scan(&row).Error; err != nil {
		t.Fatal(err)
	}
	if row.ClassName == "" || row.MethodName != "Acquire" || row.ServerName == "" || !strings.HasPrefix(row.ThreadName, "owner:") || row.CreateTime.IsZero() {
		t.Errorf("%+v", row)
	}
}
