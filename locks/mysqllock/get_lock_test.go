package mysqllock

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"gorm.io/gorm"

	"oversell/api"
	"oversell/locks"
	"oversell/stock"
)

// holderOf returns the number of the connection that holds the key's lock.
func holderOf(t *testing.T, db *gorm.DB, key string) (id sql.NullInt64) {
	t.Helper()
	if err := db.Raw("SELECT IS_USED_LOCK("+lockName+")", key).Row().Scan(&id); err != nil {
		t.Fatal(err)
	}
	return id
}

// waitersFor returns the number of statements that wait for the key's lock. After its answer, a
// statement may stay in the server's process list, but not in the state 'User lock'.
func waitersFor(t *testing.T, db *gorm.DB, key string) (n int) {
	t.Helper()
	if err := db.Raw("SELECT COUNT(*) FROM information_schema.processlist WHERE info LIKE ? AND state = 'User lock'",
		"SELECT GET_LOCK%'"+key+"'%").Row().Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// TestGetLockName checks that MySQL accepts the lock name of any key, and that different keys have
// different names.
func TestGetLockName(t *testing.T) {
	db := database(t, "")
	l, key := GetLock(db), newKey()
	for _, key := range []string{key, key + "x", key + string(make([]byte, 300)), "库存'\\" + key} {
		h := acquire(t, l, request(key, "owner", 0, 0))
		if !holderOf(t, db, key).Valid || h.Verify() != nil {
			t.Errorf("%q is not held: %v", key, h.Verify())
		}
	}
}

// TestGetLockPoolHoldsNothing checks that no connection in the pool holds a lock after a release.
func TestGetLockPoolHoldsNothing(t *testing.T) {
	db := database(t, "")
	l, key := GetLock(db), newKey()
	free := func(what string) {
		t.Helper()
		soon(t, "free after "+what, func() bool { return !holderOf(t, db, key).Valid })
	}
	h := acquire(t, l, request(key, "released", 0, 0))
	if err := h.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	free("a release")
	h = acquire(t, l, request(key, "in time", 0, 0))
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if err := h.Release(over); err != nil {
		t.Fatal(err)
	}
	free("a release for a cancelled request")

	// Release another key, which the connection does not hold. RELEASE_LOCK fails, and release must
	// end the connection, because the connection may hold a lock.
	p, err := (&getLock{db: db}).pin(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	if granted, err := p.wait(t.Context(), 0); !granted || err != nil {
		t.Fatal(granted, err)
	}
	p.key = newKey()
	if err := p.release(t.Context()); !errors.Is(err, locks.ErrNotHeld) {
		t.Errorf("the release of a lock that is not held: %v", err)
	}
	free("a release that was refused")
}

// TestGetLockWaits tests a wait of 0, a wait below one second, and a wait for which one GET_LOCK
// call is too short. A request whose wait is over must leave the server's queue.
func TestGetLockWaits(t *testing.T) {
	db, key := database(t, ""), newKey()
	h := acquire(t, GetLock(db), request(key, "holder", 0, 0))
	for _, wait := range []time.Duration{0, 100 * time.Millisecond, longestWait + 300*time.Millisecond} {
		began := time.Now()
		_, err := GetLock(db).Acquire(t.Context(), request(key, "waiter", wait, 0))
		if took := time.Since(began); !errors.Is(err, locks.ErrNotAcquired) || took < wait {
			t.Errorf("a wait of %v ended after %v: %v", wait, took, err)
		}
		if n := waitersFor(t, db, key); n != 0 {
			t.Errorf("after a wait of %v, %d zombie waiters are left", wait, n)
		}
	}
	if err := h.Verify(); err != nil {
		t.Error(err)
	}
}

// TestGetLockClear checks that Clear frees a held lock, and that the holder loses the lock.
func TestGetLockClear(t *testing.T) {
	db, key := database(t, ""), newKey()
	l := GetLock(db)
	c, ok := l.(locks.Cleaner)
	if !ok {
		t.Fatal("no Cleaner")
	}
	if err := c.Clear(t.Context(), key); err != nil {
		t.Errorf("a free key: %v", err)
	}
	h := acquire(t, l, request(key, "stuck", 0, 0))
	if err := c.Clear(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	soon(t, "the lock is free", func() bool { return !holderOf(t, db, key).Valid })
	if err := h.Verify(); !errors.Is(err, locks.ErrLost) {
		t.Errorf("verify the holder's lock: %v", err)
	}
	if err := h.Release(t.Context()); !errors.Is(err, locks.ErrNotHeld) {
		t.Errorf("the holder's release: %v", err)
	}
}

// TestGetLockSmallPool checks that the locks of many products never use up a pool of two connections, the smallest.
func TestGetLockSmallPool(t *testing.T) {
	db := database(t, "")
	small := connect(t, 2, func(*mysql.Config) {})
	s := locks.Guard(GetLock(small), stock.NewLedger(small))
	var products []int64
	for range 4 {
		products = append(products, newProduct(t, db, 10))
	}
	var all sync.WaitGroup
	for i := range 40 {
		all.Go(func() {
			o := stock.Order{Product: products[i%4], Qty: 1, Owner: newKey(), Wait: time.Minute}
			if _, err := s.Deduct(t.Context(), o); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}

// TestGetLockStaleConnections ends connections in the pool. No later request may fail.
func TestGetLockStaleConnections(t *testing.T) {
	db, other := database(t, ""), database(t, "")
	l := GetLock(db)
	var held []*locks.Lock
	var ids []int64
	for range 3 {
		key := newKey()
		held = append(held, acquire(t, l, request(key, "owner", 0, 0)))
		ids = append(ids, holderOf(t, other, key).Int64)
	}
	for i, h := range held {
		if err := h.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := other.Exec("KILL ?", ids[i]).Error; err != nil {
			t.Fatal(err)
		}
	}
	for range 3 {
		acquire(t, l, request(newKey(), "owner", 0, 0))
	}
}

// TestGetLockEndedBeforeTheWrite ends the holder's connection between the last check and the write.
// The next request acquires the lock and sells, and the late write must fail.
func TestGetLockEndedBeforeTheWrite(t *testing.T) {
	db := database(t, "")
	product := newProduct(t, db, 10)
	ledger := stock.NewLedger(db)
	next := func() error {
		_, err := locks.Guard(GetLock(db), ledger).Deduct(t.Context(), stock.Order{Product: product, Qty: 1, Owner: "next", Wait: time.Minute})
		return err
	}
	ctx := locks.WithTracer(t.Context(), func(_ context.Context, e api.Event) {
		if e.Step != api.Writing {
			return
		}
		if err := db.Exec(fmt.Sprintf("KILL %d", holderOf(t, db, e.Key).Int64)).Error; err != nil {
			t.Error(err)
		}
		if err := next(); err != nil {
			t.Errorf("the next sale: %v", err)
		}
	})
	if _, err := locks.Guard(GetLock(db), ledger).Deduct(ctx, stock.Order{Product: product, Qty: 1, Owner: "late"}); err == nil {
		t.Error("the late write succeeded")
	}
	if item, err := ledger.Read(t.Context(), product); err != nil || item.Count != 9 {
		t.Errorf("%d are left, %v, want 9", item.Count, err)
	}
}
