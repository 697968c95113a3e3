package mysqllock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"gorm.io/gorm"

	"oversell/locks"
	"oversell/stock"
)

// TestAtomicRemaining: every sale says what it left itself, so no two say the same.
func TestAtomicRemaining(t *testing.T) {
	db := database(t, "")
	const pieces, asked = 40, 60
	s, product := Atomic(db), newProduct(t, db, pieces)
	left, soldOut := sellAll(t, s, product, asked, 1)
	slices.Sort(left)
	for i, n := range left {
		if i != n {
			t.Fatalf("the sales left %v, want each number from 0 to %d once", left, pieces-1)
		}
	}
	if len(left) != pieces || soldOut != asked-pieces {
		t.Errorf("%d sold, %d told that it is sold out", len(left), soldOut)
	}
}

// TestAtomicOneRoundTrip: one question to the server, and the answer says all.
func TestAtomicOneRoundTrip(t *testing.T) {
	db := database(t, "")
	product := newProduct(t, db, 5)
	pool, err := db.DB()
	if err != nil {
		t.Fatal(err)
	}
	pool.SetMaxOpenConns(1) // all on the one that counts
	before := questions(t, db)
	r, err := Atomic(db).Deduct(t.Context(), stock.Order{Product: product, Qty: 2, Owner: "one"})
	if err != nil || r.Remaining != 3 {
		t.Fatalf("%+v, %v", r, err)
	}
	if asked := questions(t, db) - before - 1; asked != 1 {
		t.Errorf("a sale asked the server %d times", asked)
	}
}

// TestAtomicHangUp: what was sent ends. Whoever is gone before that has bought nothing.
func TestAtomicHangUp(t *testing.T) {
	db := database(t, "")
	s, product := Atomic(db), newProduct(t, db, 5)
	unlock := lockRowOf(t, db, "SELECT count FROM db_stock WHERE id = ? FOR UPDATE", product)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	sale := make(chan error, 1)
	go func() {
		_, err := s.Deduct(ctx, stock.Order{Product: product, Qty: 1, Owner: "fickle", Wait: time.Minute})
		sale <- err
	}()
	soon(t, "the UPDATE waits for the row", func() bool { return waitingFor(t, db, "UPDATE db_stock SET count = LAST_INSERT_ID%") })
	cancel()
	unlock()
	if err := <-sale; err != nil {
		t.Errorf("hung up while the UPDATE was on its way: %v", err)
	}
	if _, err := s.Deduct(ctx, stock.Order{Product: product, Qty: 1, Owner: "gone"}); !errors.Is(err, stock.ErrCancelled) {
		t.Errorf("hung up before: %v", err)
	}
	if item, err := stock.NewLedger(db).Read(t.Context(), product); err != nil || item.Count != 4 {
		t.Errorf("%d left of 5 after one sale, %v", item.Count, err)
	}
}

// TestAtomicLockedRow: it waits for a transaction that has the row, for as long as the
// order says, also past InnoDB's own time-out.
func TestAtomicLockedRow(t *testing.T) {
	db := database(t, "")
	s, product := Atomic(db), newProduct(t, db, 5)
	unlock := lockRowOf(t, db, "SELECT count FROM db_stock WHERE id = ? FOR UPDATE", product)
	r, err := s.Deduct(t.Context(), stock.Order{Product: product, Qty: 1, Owner: "impatient"})
	if !errors.Is(err, locks.ErrNotAcquired) || r.Retries != 1 {
		t.Errorf("the row is locked: %+v, %v", r, err)
	}
	time.AfterFunc(2500*time.Millisecond, unlock)
	r, err = s.Deduct(t.Context(), stock.Order{Product: product, Qty: 1, Owner: "patient", Wait: 20 * time.Second})
	if err != nil || r.Remaining != 4 || r.Retries == 0 {
		t.Errorf("%+v, %v; want a sale after a retry", r, err)
	}
}

// sellAll has twelve tasks ask so many times together, and returns what the sales left,
// and how many were told that it is sold out. Every other answer is an error.
func sellAll(t *testing.T, s locks.Strategy, product int64, asked, qty int) (left []int, soldOut int) {
	t.Helper()
	var mu sync.Mutex
	var all sync.WaitGroup
	orders := make(chan int, asked)
	for n := range asked {
		orders <- n
	}
	close(orders)
	for range 12 {
		all.Go(func() {
			for n := range orders {
				r, err := s.Deduct(t.Context(), stock.Order{Product: product, Qty: qty, Owner: fmt.Sprintf("task-%d", n), Wait: time.Minute})
				mu.Lock()
				switch {
				case err == nil:
					left = append(left, r.Remaining)
				case errors.Is(err, stock.ErrSoldOut):
					soldOut++
				default:
					t.Error(err)
				}
				mu.Unlock()
			}
		})
	}
	all.Wait()
	return left, soldOut
}

// questions is what the connection has asked so far.
func questions(t *testing.T, db *gorm.DB) (n int) {
	t.Helper()
	var name string
	if err := db.Raw("SHOW SESSION STATUS LIKE 'Questions'").Row().Scan(&name, &n); err != nil {
		t.Fatal(err)
	}
	return n
}

// waitingFor says whether a statement like that is under way.
func waitingFor(t *testing.T, db *gorm.DB, statement string) bool {
	t.Helper()
	var n int
	if err := db.Raw("SELECT COUNT(*) FROM information_schema.processlist WHERE info LIKE ?", statement).Row().Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n > 0
}
