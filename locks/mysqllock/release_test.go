package mysqllock

import (
	"errors"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"gorm.io/gorm"

	"oversell/locks"
	"oversell/locks/lockstest"
	"oversell/stock"
)

// released are the locks whose release names its holder, and so may be sent again.
func released(db *gorm.DB) map[string]locks.Locker {
	const lease = time.Hour // no test waits for it
	return map[string]locks.Locker{"db-row": DBRow(db, lease), "db-row-fair": DBRowFair(db, lease)}
}

// viaLine is a pool whose connections run over a line.
func viaLine(t *testing.T) (*lockstest.Link, *gorm.DB) {
	t.Helper()
	cfg, err := mysql.ParseDSN(servers.Addresses().MySQL)
	if err != nil {
		t.Fatal(err)
	}
	line, err := lockstest.NewLink(t.Context(), cfg.Addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = line.Close() })
	return line, database(t, line.Addr())
}

// TestReleaseOutage: the connections break before the release. The next holder gets in when
// they are back, not when the lease is over, which is an hour.
func TestReleaseOutage(t *testing.T) {
	line, db := viaLine(t)
	others := released(database(t, ""))
	for id, l := range released(db) {
		t.Run(id, func(t *testing.T) {
			key := newKey()
			h := acquire(t, l, request(key, "holder", 0, 0))
			line.Cut(true)
			err := h.Release(t.Context())
			line.Cut(false)
			if err == nil || errors.Is(err, locks.ErrNotHeld) {
				t.Errorf("released without a server: %v", err)
			}
			acquire(t, others[id], request(key, "next", 30*time.Second, 0))
		})
	}
}

// TestQueuedOutage: a waiter has joined the queue, and the connection breaks. Those behind it do
// not wait until its lease is over, which is an hour.
func TestQueuedOutage(t *testing.T) {
	line, db := viaLine(t)
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
	line.Cut(true)
	err := <-gone
	line.Cut(false)
	if !errors.Is(err, stock.ErrUnavailable) {
		t.Errorf("the waiter: %v", err)
	}
	if err := h.Release(t.Context()); err != nil {
		t.Error(err)
	}
	acquire(t, other, request(key, "next", 30*time.Second, 0))
}

// TestReleaseLostAnswer: the server releases, and the answer is lost. That is no loss of the
// lock.
func TestReleaseLostAnswer(t *testing.T) {
	line, db := viaLine(t)
	others := released(database(t, ""))
	for id, l := range released(db) {
		t.Run(id, func(t *testing.T) {
			key := newKey()
			h := acquire(t, l, request(key, "holder", 0, 0))
			line.LoseAnswer(map[string]string{"db-row": key, "db-row-fair": "DELETE FROM db_queue"}[id])
			if err := h.Release(t.Context()); err != nil {
				t.Errorf("released, without an answer: %v", err)
			}
			acquire(t, others[id], request(key, "next", 30*time.Second, 0))
		})
	}
}
