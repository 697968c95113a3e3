package mysqllock

import (
	"errors"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"gorm.io/gorm"

	"oversell/locks"
	"oversell/stock"
	"oversell/trial/lockstest"
)

// released returns the strategies whose release statement names the holder. So the statement may be
// sent again after an outage.
func released(db *gorm.DB) map[string]locks.Locker {
	const lease = time.Hour // no test waits for the end of this lease
	return map[string]locks.Locker{"db-row": DBRow(db, lease), "db-row-fair": DBRowFair(db, lease)}
}

// viaLink returns a link (a proxy that tests can cut), and a pool whose connections use the link.
func viaLink(t *testing.T) (*lockstest.Link, *gorm.DB) {
	t.Helper()
	cfg, err := mysql.ParseDSN(servers.Addresses().MySQL)
	if err != nil {
		t.Fatal(err)
	}
	link, err := lockstest.NewLink(t.Context(), cfg.Addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = link.Close() })
	return link, database(t, link.Addr())
}

// TestReleaseOutage cuts the connections before the release. The lock must be free soon after the
// outage, not after the lease of one hour.
func TestReleaseOutage(t *testing.T) {
	link, db := viaLink(t)
	others := released(database(t, ""))
	for id, l := range released(db) {
		t.Run(id, func(t *testing.T) {
			key := newKey()
			h := acquire(t, l, request(key, "holder", 0, 0))
			link.Cut(true)
			err := h.Release(t.Context())
			link.Cut(false)
			if err == nil || errors.Is(err, locks.ErrNotHeld) {
				t.Errorf("released without a server: %v", err)
			}
			acquire(t, others[id], request(key, "next", 30*time.Second, 0))
		})
	}
}

// TestQueuedOutage cuts the connection of a waiter in the queue. Later waiters must not wait until
// the lost waiter's lease of one hour ends.
func TestQueuedOutage(t *testing.T) {
	link, db := viaLink(t)
	other, key := DBRowFair(database(t, ""), time.Hour), newKey()
	h := acquire(t, other, request(key, "holder", 0, 0))
	gone := make(chan error, 1)
	go func() {
		_, err := DBRowFair(db, time.Hour).Acquire(t.Context(), request(key, "waiter", time.Minute, 0))
		gone <- err
	}()
	soon(t, "the waiter has joined", func() bool {
		var n int
		err := db.Raw("SELECT COUNT(*) FROM db_queue WHERE lock_name = ?", key).Row().Scan(&n)
		return err == nil && n == 2
	})
	link.Cut(true)
	err := <-gone
	link.Cut(false)
	if !errors.Is(err, stock.ErrUnavailable) {
		t.Errorf("the waiter: %v", err)
	}
	if err := h.Release(t.Context()); err != nil {
		t.Error(err)
	}
	acquire(t, other, request(key, "next", 30*time.Second, 0))
}

// TestReleaseLostAnswer loses the answer to a successful release. Release must still return no
// error.
func TestReleaseLostAnswer(t *testing.T) {
	link, db := viaLink(t)
	others := released(database(t, ""))
	for id, l := range released(db) {
		t.Run(id, func(t *testing.T) {
			key := newKey()
			h := acquire(t, l, request(key, "holder", 0, 0))
			link.LoseAnswer(map[string]string{"db-row": key, "db-row-fair": "DELETE FROM db_queue"}[id])
			if err := h.Release(t.Context()); err != nil {
				t.Errorf("released, without an answer: %v", err)
			}
			acquire(t, others[id], request(key, "next", 30*time.Second, 0))
		})
	}
}

// TestLateAcquisition lets MySQL execute the statement of an acquisition after its clean-up, as it may after a
// hang. The lock must be free soon, not after the lease of one hour.
func TestLateAcquisition(t *testing.T) {
	t.Parallel()
	link, db := viaLink(t)
	own := database(t, "")
	for id, statement := range map[string]string{
		"db-row": "UPDATE db_lock", "db-row-fair": "INSERT INTO db_queue", "db-row-cleaned": "INSERT INTO db_lock_cleaned",
	} {
		t.Run(id, func(t *testing.T) {
			locker := func(db *gorm.DB) locks.Locker {
				if id == "db-row-cleaned" {
					return DBRowCleaned(db, time.Hour)
				}
				return released(db)[id]
			}
			key := newKey()
			if err := acquire(t, locker(own), request(key, "before", 0, 0)).Release(t.Context()); err != nil {
				t.Fatal(err)
			}
			late, free := link.HoldNext(statement)
			failed := make(chan error, 1)
			go func() {
				_, err := locker(db).Acquire(t.Context(), request(key, "late", 0, 0))
				failed <- err
			}()
			<-late
			if err := <-failed; !errors.Is(err, stock.ErrUnavailable) {
				t.Errorf("without an answer: %v", err)
			}
			free()
			acquire(t, locker(own), request(key, "next", 30*time.Second, 0))
		})
	}
}
