package mysqllock

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"oversell/api"
	"oversell/locks"
	"oversell/stock"
)

// TestShareModeDeadlocks lets two sales read before either of them writes. One sale must get error
// 1213 and try again, and no update may be lost.
func TestShareModeDeadlocks(t *testing.T) {
	db := database(t, "")
	product := newProduct(t, db, 10)
	var mu sync.Mutex
	reads, both := 0, make(chan struct{})
	ctx := locks.WithTracer(t.Context(), func(ctx context.Context, e api.Event) {
		if e.Step != api.Read {
			return
		}
		mu.Lock()
		if reads++; reads == 2 {
			close(both)
		}
		mu.Unlock()
		select {
		case <-both:
		case <-ctx.Done():
		}
	})
	retries := make(chan int, 2)
	var sales sync.WaitGroup
	for _, owner := range []string{"first", "second"} {
		sales.Go(func() {
			r, err := ShareMode(db).Deduct(ctx, stock.Order{Product: product, Qty: 1, Owner: owner, Wait: 20 * time.Second})
			if err != nil {
				t.Errorf("%s: %v", owner, err)
			}
			retries <- r.Retries
		})
	}
	sales.Wait()
	if n := <-retries + <-retries; n == 0 {
		t.Error("no sale had to try again")
	}
	if item, err := stock.NewLedger(db).Read(t.Context(), product); err != nil || item.Count != 8 {
		t.Errorf("%d left of 10 after two sales, %v", item.Count, err)
	}
}

// TestShareModeDeadlockError checks that one of two deadlocked transactions gets error 1213. The
// sale has a wait of 0, so it must not try again.
func TestShareModeDeadlockError(t *testing.T) {
	db := database(t, "")
	product := newProduct(t, db, 10)
	there, goOn := make(chan struct{}), make(chan struct{})
	ctx := locks.WithTracer(t.Context(), func(_ context.Context, e api.Event) {
		if e.Step == api.Read {
			close(there)
			<-goOn
		}
	})
	sale := make(chan error, 1)
	go func() {
		_, err := ShareMode(db).Deduct(ctx, stock.Order{Product: product, Qty: 1, Owner: "first"})
		sale <- err
	}()
	<-there
	pool, err := db.DB()
	if err != nil {
		t.Fatal(err)
	}
	other, err := pool.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.Rollback() }()
	var count int
	if err := other.QueryRow("SELECT count FROM db_stock WHERE id = ? LOCK IN SHARE MODE", product).Scan(&count); err != nil {
		t.Fatal(err)
	}
	wrote := make(chan error, 1)
	go func() {
		_, err := other.Exec("UPDATE db_stock SET count = ? WHERE id = ?", count-1, product)
		wrote <- err
	}()
	close(goOn)
	// The server chooses which of the two transactions it rolls back.
	first, second := <-sale, <-wrote
	var e *mysql.MySQLError
	if !errors.As(errors.Join(first, second), &e) || e.Number != 1213 || (first != nil) == (second != nil) {
		t.Errorf("the sale: %v; the other transaction: %v; want 1213 for one of them", first, second)
	}
	if first != nil && !errors.Is(first, locks.ErrNotAcquired) {
		t.Errorf("the sale: %v, want %v", first, locks.ErrNotAcquired)
	}
}
