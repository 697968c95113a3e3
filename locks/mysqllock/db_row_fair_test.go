package mysqllock

import (
	"errors"
	"slices"
	"testing"
	"time"

	"gorm.io/gorm"

	"oversell/locks"
)

func queueOf(t *testing.T, db *gorm.DB, key string) (ids []int64) {
	t.Helper()
	if err := db.Raw("SELECT id FROM db_queue WHERE lock_name = ? ORDER BY id", key).Scan(&ids).Error; err != nil {
		t.Fatal(err)
	}
	return ids
}

// joinDead inserts the row of a waiter that never renews its row.
func joinDead(t *testing.T, db *gorm.DB, key string, lease time.Duration) int64 {
	t.Helper()
	l := &dbRowFair{db, time.Minute}
	id, err := l.join(t.Context(), &queueRow{key: key, owner: "dead", lease: lease})
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// TestFairDead checks that a dead holder and a dead waiter delay the queue only until their own
// leases end. The order of the living waiters must not change.
func TestFairDead(t *testing.T) {
	db, key := database(t, ""), newKey()
	l := DBRowFair(db, time.Minute)
	dead := []int64{joinDead(t, db, key, 2*time.Second)}
	granted := make(chan *locks.Lock, 2)
	begin := func(owner string, standing int) {
		go func() {
			h, err := l.Acquire(t.Context(), request(key, owner, time.Minute, 0))
			if err != nil {
				t.Error(err)
			}
			granted <- h
		}()
		soon(t, owner+" is in the queue", func() bool { return len(queueOf(t, db, key)) >= standing })
	}
	began := time.Now()
	begin("first", 2)
	dead = append(dead, joinDead(t, db, key, 2*time.Second))
	begin("second", 4)
	// Living waiters have a lease of a minute. Only the dead waiters' lease of 2 s may delay them.
	for _, owner := range []string{"first", "second"} {
		h := <-granted
		if h == nil || h.Owner() != owner {
			t.Fatalf("granted to %+v, want %s", h, owner)
		}
		if took := time.Since(began); took > 30*time.Second || took < time.Second {
			t.Errorf("%s was granted after %v, with a dead waiter before it whose lease is 2 s", owner, took)
		}
		if err := h.Release(t.Context()); err != nil {
			t.Error(err)
		}
	}
	for _, id := range dead {
		if err := (&dbRowFair{db: db}).renew(t.Context(), id, time.Minute); !errors.Is(err, locks.ErrNotHeld) {
			t.Errorf("the row of the dead waiter: %v, want %v", err, locks.ErrNotHeld)
		}
	}
}

// TestFairWaiterOutlivesLease checks that a living waiter and a living holder keep their rows for
// longer than one lease.
func TestFairWaiterOutlivesLease(t *testing.T) {
	db, key := database(t, ""), newKey()
	l := DBRowFair(db, time.Second)
	first := acquire(t, l, request(key, "first", 0, 0))
	granted := make(chan *locks.Lock, 1)
	go func() {
		h, err := l.Acquire(t.Context(), request(key, "second", time.Minute, 0))
		if err != nil {
			t.Error(err)
		}
		granted <- h
	}()
	soon(t, "the waiter is in the queue", func() bool { return len(queueOf(t, db, key)) == 2 })
	before := queueOf(t, db, key)
	time.Sleep(2500 * time.Millisecond)
	if now := queueOf(t, db, key); !slices.Equal(now, before) || first.Verify() != nil {
		t.Errorf("after two and a half leases: %v, before: %v; the holder: %v", now, before, first.Verify())
	}
	if err := first.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	if h := <-granted; h.Fence() != before[1] {
		t.Errorf("fence %d, want %d", h.Fence(), before[1])
	} else if err := h.Release(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestFairReaped checks that a waiter whose row was deleted during a pause joins again at the end
// of the queue.
func TestFairReaped(t *testing.T) {
	db, key := database(t, ""), newKey()
	l := &dbRowFair{db, time.Minute}
	first := acquire(t, l, request(key, "first", 0, 0))
	paused := &queueRow{key: key, owner: "paused", lease: time.Minute}
	if ahead, err := l.advance(t.Context(), paused); err != nil || ahead != 1 {
		t.Fatalf("%d ahead, %v", ahead, err)
	}
	if err := l.leave(t.Context(), paused.id); err != nil {
		t.Fatal(err)
	}
	later := joinDead(t, db, key, time.Minute)
	if ahead, err := l.advance(t.Context(), paused); err != nil || ahead != 2 || paused.id <= later {
		t.Errorf("%d ahead of row %d, %v; the later waiter has row %d", ahead, paused.id, err, later)
	}
	// Clear deletes all rows. The holder loses the lock, and the waiter joins again.
	if err := l.Clear(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	if err := first.Release(t.Context()); !errors.Is(err, locks.ErrNotHeld) {
		t.Errorf("the holder's release: %v", err)
	}
	if ahead, err := l.advance(t.Context(), paused); err != nil || ahead != 0 || !slices.Equal(queueOf(t, db, key), []int64{paused.id}) {
		t.Errorf("%d ahead, %v, queue %v", ahead, err, queueOf(t, db, key))
	}
	l.quit(t.Context(), paused, nil)
}

// TestFairRowsAppearInOrder checks that no waiter gets the lock before all lower ids are visible.
func TestFairRowsAppearInOrder(t *testing.T) {
	db, key := database(t, ""), newKey()
	l := &dbRowFair{db, time.Minute}
	if err := acquire(t, l, request(key, "first", 0, 0)).Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	tx := db.Begin()
	defer tx.Rollback()
	if err := tx.Exec(`INSERT INTO db_queue (lock_name, owner, expires_at)
		SELECT lock_name, 'slow', UTC_TIMESTAMP(6) + INTERVAL 1 MINUTE FROM db_turnstile WHERE lock_name = ? FOR UPDATE`, key).Error; err != nil {
		t.Fatal(err)
	}
	granted := make(chan *locks.Lock, 1)
	go func() {
		h, err := l.Acquire(t.Context(), request(key, "fast", time.Minute, 0))
		if err != nil {
			t.Error(err)
		}
		granted <- h
	}()
	select {
	case h := <-granted:
		t.Fatalf("granted with fence %d before a lower one was visible", h.Fence())
	case <-time.After(500 * time.Millisecond):
	}
	if err := tx.Commit().Error; err != nil {
		t.Fatal(err)
	}
	soon(t, "both are visible", func() bool { return len(queueOf(t, db, key)) == 2 })
	slow := queueOf(t, db, key)[0]
	if err := l.leave(t.Context(), slow); err != nil {
		t.Fatal(err)
	}
	h := <-granted
	if h.Fence() <= slow {
		t.Errorf("fence %d after %d", h.Fence(), slow)
	}
	_ = h.Release(t.Context())
}

// TestFairJanitor checks that the janitor deletes an expired row even if no request waits in its
// queue, and keeps a row that has not expired.
func TestFairJanitor(t *testing.T) {
	db, dead, living := database(t, ""), newKey(), newKey()
	joinDead(t, db, dead, time.Microsecond)
	joinDead(t, db, living, time.Minute)
	if err := reapAll(t.Context(), &dbRowFair{db: db}); err != nil {
		t.Fatal(err)
	}
	if len(queueOf(t, db, dead)) != 0 || len(queueOf(t, db, living)) != 1 {
		t.Errorf("the dead: %v, the living: %v", queueOf(t, db, dead), queueOf(t, db, living))
	}
}
