package mysqllock

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"gorm.io/gorm"

	"oversell/api"
	"oversell/locks"
	"oversell/stock"
)

// row is a row of db_lock.
type row struct {
	Owner     *string
	Epoch     int64
	ExpiresIn float64 // seconds, by the database's clock
}

func rowOf(t *testing.T, db *gorm.DB, key string) (got row) {
	t.Helper()
	if err := db.Raw("SELECT owner, epoch, TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), expires_at) / 1e6 AS expires_in "+
		"FROM db_lock WHERE lock_name = ?", key).Scan(&got).Error; err != nil {
		t.Fatal(err)
	}
	return got
}

// TestTakeOver checks that a new owner can take over an expired row. The old owner can neither
// renew nor release the row, even before another request takes it.
func TestTakeOver(t *testing.T) {
	db := database(t, "")
	l, key := &dbRow{db, time.Minute}, newKey()
	if epoch, err := l.take(t.Context(), key, "old", time.Hour); err != nil || epoch != 1 {
		t.Fatalf("epoch %d, %v", epoch, err)
	}
	if epoch, err := l.take(t.Context(), key, "new", time.Minute); err != nil || epoch != 0 {
		t.Fatalf("another owner got epoch %d, %v", epoch, err)
	}
	expire(t, db, key)
	if err := l.renew(t.Context(), key, "old", time.Hour); !errors.Is(err, locks.ErrNotHeld) {
		t.Errorf("renewed after its expiry: %v", err)
	}
	if err := l.release(t.Context(), key, "old"); !errors.Is(err, locks.ErrNotHeld) {
		t.Errorf("released after its expiry: %v", err)
	}
	if epoch, err := l.take(t.Context(), key, "new", time.Minute); err != nil || epoch != 2 {
		t.Fatalf("taken over with epoch %d, %v", epoch, err)
	}
	for _, err := range []error{l.renew(t.Context(), key, "old", time.Hour), l.release(t.Context(), key, "old")} {
		if !errors.Is(err, locks.ErrNotHeld) {
			t.Errorf("by the old owner, while the new one holds it: %v", err)
		}
	}
	if got := rowOf(t, db, key); got.Owner == nil || *got.Owner != "new" || got.ExpiresIn > 60 {
		t.Errorf("the new owner's row: %+v", got)
	}
}

func expire(t *testing.T, db *gorm.DB, key string) {
	t.Helper()
	if err := db.Exec("UPDATE db_lock SET expires_at = UTC_TIMESTAMP(6) WHERE lock_name = ?", key).Error; err != nil {
		t.Fatal(err)
	}
}

// TestDatabaseClockJumps lets the clock of the database jump for a second client. Ahead, it gets a held lock, so
// that only the fence protects the stock; back, it does not get a lock whose lease has ended.
func TestDatabaseClockJumps(t *testing.T) {
	locksOf := map[string]func(*gorm.DB) locks.Locker{
		"db-row":      func(db *gorm.DB) locks.Locker { return DBRow(db, time.Minute) },
		"db-row-fair": func(db *gorm.DB) locks.Locker { return DBRowFair(db, time.Minute) },
	}
	db := database(t, "")
	ahead, back := databaseAt(t, time.Hour), databaseAt(t, -time.Hour)
	for name, lock := range locksOf {
		key := newKey()
		first := acquire(t, lock(db), request(key, "first", 0, time.Minute))
		second := acquire(t, lock(ahead), request(key, "second", 0, time.Minute))
		if second.Fence() <= first.Fence() {
			t.Errorf("%s: the second holder has fence %d, the first %d", name, second.Fence(), first.Fence())
		}
		key = newKey()
		acquire(t, lock(db), locks.Request{Key: key, Owner: "dead", Lease: 50 * time.Millisecond, NoRenew: true})
		if _, err := lock(back).Acquire(t.Context(), request(key, "late", 200*time.Millisecond, time.Minute)); !errors.Is(err, locks.ErrNotAcquired) {
			t.Errorf("%s: with the clock set back, the lock of a dead holder: %v", name, err)
		}
		acquire(t, lock(db), request(key, "next", time.Minute, time.Minute))
	}
}

// TestFirstGrant sends concurrent requests for a key without a row. One request must acquire the
// lock, and no request may deadlock.
func TestFirstGrant(t *testing.T) {
	db := database(t, "")
	for range 20 {
		key := newKey()
		granted := make(chan int64, 8)
		var requests sync.WaitGroup
		for i := range 8 {
			requests.Go(func() {
				epoch, err := (&dbRow{db, time.Minute}).take(t.Context(), key, string(rune('a'+i)), time.Minute)
				if err != nil {
					t.Error(err)
				}
				if epoch > 0 {
					granted <- epoch
				}
			})
		}
		requests.Wait()
		if len(granted) != 1 || <-granted != 1 {
			t.Fatalf("%d requests acquired the new key", len(granted))
		}
	}
}

// TestJanitor checks that Janitor frees the locks of expired rows only, and changes no epoch.
func TestJanitor(t *testing.T) {
	db := database(t, "")
	l, dead, living := &dbRow{db, time.Minute}, newKey(), newKey()
	for _, key := range []string{dead, living} {
		if _, err := l.take(t.Context(), key, "owner", time.Minute); err != nil {
			t.Fatal(err)
		}
	}
	expire(t, db, dead)
	ctx, cancel := context.WithCancel(t.Context())
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		Janitor(ctx, db, 10*time.Millisecond)
	}()
	soon(t, "the dead row is freed", func() bool { return rowOf(t, db, dead).Owner == nil })
	cancel()
	<-gone
	if got := rowOf(t, db, living); got.Owner == nil || got.Epoch != 1 {
		t.Errorf("the living row: %+v", got)
	}
	if got := rowOf(t, db, dead); got.Epoch != 1 {
		t.Errorf("the dead row: %+v", got)
	}
	if epoch, err := l.take(t.Context(), dead, "next", time.Minute); err != nil || epoch != 2 {
		t.Errorf("the grant after the janitor: epoch %d, %v", epoch, err)
	}
}

// TestRowLocked lets another client lock the row in db_lock with FOR UPDATE. Acquire must treat
// this row lock as contention, not as an outage.
func TestRowLocked(t *testing.T) {
	db := database(t, "")
	l, key := DBRow(db, time.Minute), newKey()
	if err := acquire(t, l, request(key, "first", 0, 0)).Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	unlock := lockRowOf(t, db, "SELECT owner FROM db_lock WHERE lock_name = ? FOR UPDATE", key)
	time.AfterFunc(2500*time.Millisecond, unlock) // after 2 s (stock.Open), InnoDB returns 1205
	h, err := l.Acquire(t.Context(), request(key, "waiter", 20*time.Second, 0))
	if err != nil {
		t.Fatalf("while the row was locked by a statement: %v (unavailable: %v)", err, errors.Is(err, stock.ErrUnavailable))
	}
	_ = h.Release(t.Context())
}

// TestRowDeleted deletes the row in db_lock, as an operator may, so that its epoch begins at 1
// again. The next sale must still get a fence above the highest fence, which the stock row keeps.
func TestRowDeleted(t *testing.T) {
	db := database(t, "")
	item := stock.Item{ProductCode: "mysqllock", StockCode: "001", Count: 10}
	if err := db.Create(&item).Error; err != nil {
		t.Fatal(err)
	}
	s := locks.Guard(DBRow(db, time.Minute), stock.NewLedger(db))
	for n := int64(1); n <= 6; n++ {
		receipt, err := s.Deduct(t.Context(), stock.Order{Product: item.ID, Qty: 1, Owner: "owner", Fenced: true})
		if err != nil || receipt.Fence != n {
			t.Fatalf("sale %d has fence %d, %v", n, receipt.Fence, err)
		}
		if n == 4 {
			if err := db.Exec("DELETE FROM db_lock WHERE lock_name = ?", api.Key(item.ID)).Error; err != nil {
				t.Fatal(err)
			}
		}
	}
}
