package mysqllock

import (
	"errors"
	"sync"
	"testing"
	"time"

	"oversell/api"
	"oversell/locks"
	"oversell/stock"
)

// TestWaitersLeaveConnections checks that requests that keep a connection while they wait for a
// lock never take all connections, even if strategies are mixed.
func TestWaitersLeaveConnections(t *testing.T) {
	db, elsewhere := database(t, ""), database(t, "")
	pool, err := db.DB()
	if err != nil {
		t.Fatal(err)
	}
	product, other := newProduct(t, db, 100), newProduct(t, db, 100)
	ledger := stock.NewLedger(db)
	strategies := []locks.Strategy{ForUpdate(db), ShareMode(db), locks.Guard(GetLock(db), ledger)}
	unlock := lockRowOf(t, elsewhere, "SELECT count FROM db_stock WHERE id = ? FOR UPDATE", product)
	acquire(t, GetLock(elsewhere), request(api.Key(product), "holder", time.Minute, 0))
	before := pool.Stats().WaitCount // the waits for a connection during the migrations
	var all sync.WaitGroup
	for i := range 30 {
		all.Go(func() {
			o := stock.Order{Product: product, Qty: 1, Owner: newKey(), Wait: 5 * time.Second}
			if _, err := strategies[i%3].Deduct(t.Context(), o); err != nil && !locks.NothingTaken(err) {
				t.Error(err)
			}
		})
	}
	soon(t, "several requests wait for the row", func() bool { return pool.Stats().InUse >= 4 })
	for range 50 {
		if _, err := ledger.Read(t.Context(), other); err != nil {
			t.Error(err)
		}
	}
	if _, err := Atomic(db).Deduct(t.Context(), stock.Order{Product: other, Qty: 1, Owner: "other", Wait: time.Minute}); err != nil {
		t.Error(err)
	}
	if waited := pool.Stats().WaitCount - before; waited > 0 {
		t.Errorf("%d requests had to wait for a connection", waited)
	}
	_, err = ForUpdate(db).Deduct(t.Context(), stock.Order{Product: other, Qty: 1, Owner: "late", Wait: 10 * time.Millisecond})
	if err != nil && !errors.Is(err, locks.ErrNotAcquired) {
		t.Errorf("when all connections for waiters are taken: %v", err)
	}
	unlock()
	all.Wait()
	if _, err := ForUpdate(db).Deduct(t.Context(), stock.Order{Product: other, Qty: 1, Owner: "after", Wait: time.Minute}); err != nil {
		t.Errorf("when all waiters have left: %v", err)
	}
}

// TestNoRoom checks that a request that gets no connection within its wait returns ErrNotAcquired,
// not ErrUnavailable.
func TestNoRoom(t *testing.T) {
	db := database(t, "")
	product := newProduct(t, db, 100)
	for range 4 {
		leave, err := stock.Enter(t.Context(), db)
		if err != nil {
			t.Fatal(err)
		}
		defer leave()
	}
	for _, s := range []locks.Strategy{ForUpdate(db), ShareMode(db), locks.Guard(GetLock(db), stock.NewLedger(db))} {
		_, err := s.Deduct(t.Context(), stock.Order{Product: product, Qty: 1, Owner: "late", Wait: 10 * time.Millisecond})
		if !errors.Is(err, locks.ErrNotAcquired) || errors.Is(err, stock.ErrUnavailable) {
			t.Errorf("%s: %v", s.Card().ID, err)
		}
	}
}

// TestResetOutwaitsSales locks the row for longer than InnoDB lets a sale wait, and takes all
// connections of the pool for sales. A reset must still succeed.
func TestResetOutwaitsSales(t *testing.T) {
	db := database(t, "")
	pool, err := db.DB()
	if err != nil {
		t.Fatal(err)
	}
	product := newProduct(t, db, 1)
	own, err := stock.OpenForResets(servers.Addresses().MySQL)
	if err != nil {
		t.Fatal(err)
	}
	if ownPool, err := own.DB(); err == nil {
		t.Cleanup(func() { _ = ownPool.Close() })
	}
	for range 7 { // the eighth connection locks the row
		conn, err := pool.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
	}
	time.AfterFunc(3*time.Second, lockRowOf(t, db, "SELECT count FROM db_stock WHERE id = ? FOR UPDATE", product))
	if err := stock.NewLedger(own).Reset(t.Context(), product, 7); err != nil {
		t.Fatal(err)
	}
	if item, err := stock.NewLedger(own).ReadPrimary(t.Context(), product); err != nil || item.Count != 7 {
		t.Errorf("%+v, %v", item, err)
	}
}
