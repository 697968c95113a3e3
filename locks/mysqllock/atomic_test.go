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

// TestAtomicRemaining checks that each sale returns its own remaining count, and that no two sales
// return the same count.
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
		t.Errorf("%d sold, %d rejected as sold out", len(left), soldOut)
	}
}

// TestAtomicOneRoundTrip checks that a sale sends exactly one statement.
func TestAtomicOneRoundTrip(t *testing.T) {
	db := database(t, "")
	product := newProduct(t, db, 5)
	pool, err := db.DB()
	if err != nil {
		t.Fatal(err)
	}
	pool.SetMaxOpenConns(1) // all statements use the connection that counts them
	before := questions(t, db)
	r, err := Atomic(db).Deduct(t.Context(), stock.Order{Product: product, Qty: 2, Owner: "one"})
	if err != nil || r.Remaining != 3 {
		t.Fatalf("%+v, %v", r, err)
	}
	if asked := questions(t, db) - before - 1; asked != 1 {
		t.Errorf("a sale sent %d statements", asked)
	}
}

// TestAtomicCancelled cancels a request while its UPDATE waits. That UPDATE must complete. A
// request that is cancelled before its UPDATE must take no piece.
func TestAtomicCancelled(t *testing.T) {
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
		t.Errorf("cancelled during the UPDATE: %v", err)
	}
	if _, err := s.Deduct(ctx, stock.Order{Product: product, Qty: 1, Owner: "cancelled"}); !errors.Is(err, stock.ErrCancelled) {
		t.Errorf("cancelled before: %v", err)
	}
	if item, err := stock.NewLedger(db).Read(t.Context(), product); err != nil || item.Count != 4 {
		t.Errorf("%d left of 5 after one sale, %v", item.Count, err)
	}
}

// TestAtomicLockedRow checks that a sale waits for a locked row until the order's wait is over,
// even if InnoDB's own time-out is shorter.
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

// sellAll sends the given number of orders from twelve goroutines. It returns the count after each
// sale, and the number of orders rejected as sold out. Any other outcome fails the test.
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

// questions returns the number of statements that the connection has sent.
func questions(t *testing.T, db *gorm.DB) (n int) {
	t.Helper()
	var name string
	if err := db.Raw("SHOW SESSION STATUS LIKE 'Questions'").Row().Scan(&name, &n); err != nil {
		t.Fatal(err)
	}
	return n
}

// waitingFor reports whether the server is executing a statement that matches the pattern.
func waitingFor(t *testing.T, db *gorm.DB, statement string) bool {
	t.Helper()
	var n int
	if err := db.Raw("SELECT COUNT(*) FROM information_schema.processlist WHERE info LIKE ?", statement).Row().Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n > 0
}
