package mysqllock

import (
	"context"
	"errors"
	"testing"
	"time"

	"gorm.io/gorm"

	"oversell/api"
	"oversell/locks"
	"oversell/stock"
)

// TestSkipLockedSoldOutIsSure cancels a sale that has locked the last piece. Another sale must wait
// for the piece, and must not be rejected as sold out.
func TestSkipLockedSoldOutIsSure(t *testing.T) {
	db := database(t, "")
	s, product := SkipLocked(db), newProduct(t, db, 1)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	has := make(chan struct{})
	fickle := make(chan error, 1)
	go func() {
		traced := locks.WithTracer(ctx, func(_ context.Context, e api.Event) {
			if e.Step == api.Read {
				close(has)
			}
		})
		_, err := s.Deduct(traced, stock.Order{Product: product, Qty: 1, Owner: "fickle", Wait: time.Minute, Work: time.Hour})
		fickle <- err
	}()
	<-has
	if _, err := s.Deduct(t.Context(), stock.Order{Product: product, Qty: 1, Owner: "one look"}); !errors.Is(err, locks.ErrNotAcquired) {
		t.Errorf("one try for the last piece, which is locked: %v, want %v", err, locks.ErrNotAcquired)
	}
	if _, err := s.Deduct(t.Context(), stock.Order{Product: product, Qty: 2, Owner: "greedy"}); !errors.Is(err, stock.ErrSoldOut) {
		t.Errorf("two of one: %v", err)
	}
	patient := make(chan error, 1)
	go func() {
		_, err := s.Deduct(t.Context(), stock.Order{Product: product, Qty: 1, Owner: "patient", Wait: time.Minute})
		patient <- err
	}()
	soon(t, "the other sale waits for the piece", func() bool { return waitingFor(t, db, "SELECT `id` FROM `db_units`%FOR UPDATE") })
	cancel()
	if err := <-fickle; !errors.Is(err, stock.ErrCancelled) {
		t.Errorf("the cancelled sale: %v", err)
	}
	if err := <-patient; err != nil {
		t.Errorf("the sale that waited for the piece: %v", err)
	}
	if _, err := s.Deduct(t.Context(), stock.Order{Product: product, Qty: 1, Owner: "late"}); !errors.Is(err, stock.ErrSoldOut) {
		t.Errorf("now it is sold out: %v", err)
	}
}

// TestSkipLockedRestock runs concurrent sales that repeatedly find no rows. Each piece must become
// one row, and an order must get all of its pieces or none.
func TestSkipLockedRestock(t *testing.T) {
	db := database(t, "")
	s, product := SkipLocked(db), newProduct(t, db, 2*restockSize+5)
	sold, soldOut := sellAll(t, s, product, restockSize, 3) // orders for 3000 pieces in total
	if len(sold) != 668 || soldOut != restockSize-668 {
		t.Errorf("%d sales of 3 and %d rejected orders of %d pieces", len(sold), soldOut, 2*restockSize+5)
	}
	counts(t, s, product, 1)
	if item, err := stock.NewLedger(db).Read(t.Context(), product); err != nil || item.Count != 0 {
		t.Errorf("%d pieces stayed in db_stock, %v", item.Count, err)
	}
}

// TestSkipLockedCrash checks that a crash during a restock leaves the stock unchanged.
func TestSkipLockedCrash(t *testing.T) {
	db, dying := database(t, ""), database(t, "")
	power := errors.New("power cut")
	err := dying.Callback().Create().Before("gorm:create").Register("crash", func(tx *gorm.DB) { _ = tx.AddError(power) })
	if err != nil {
		t.Fatal(err)
	}
	product := newProduct(t, db, 7)
	if _, err := SkipLocked(dying).Deduct(t.Context(), stock.Order{Product: product, Qty: 1, Owner: "dying"}); !errors.Is(err, power) || !locks.NothingTaken(err) {
		t.Errorf("the sale that crashed: %v", err)
	}
	counts(t, SkipLocked(db), product, 7)
	if _, err := SkipLocked(db).Deduct(t.Context(), stock.Order{Product: product, Qty: 7, Owner: "next"}); err != nil {
		t.Errorf("the next: %v", err)
	}
}

// TestSkipLockedReset checks that after a reset, the product has its new count. It must have no
// rows in db_units until the next sale.
func TestSkipLockedReset(t *testing.T) {
	db := database(t, "")
	s, product := SkipLocked(db), newProduct(t, db, 3)
	if _, err := s.Deduct(t.Context(), stock.Order{Product: product, Qty: 1, Owner: "first"}); err != nil {
		t.Fatal(err)
	}
	reset(t, db, s, product, 5000)
	counts(t, s, product, 5000)
	if n := rowsOf(t, db, "db_units", product); n != 0 {
		t.Errorf("the reset left %d rows", n)
	}
	if _, err := s.Deduct(t.Context(), stock.Order{Product: product, Qty: 1, Owner: "second"}); err != nil {
		t.Fatal(err)
	}
	counts(t, s, product, 4999)
	if n := rowsOf(t, db, "db_units", product); n != restockSize-1 {
		t.Errorf("%d rows, want %d", n, restockSize-1)
	}
	if _, err := s.(locks.StockHolder).Count(t.Context(), 1<<60); !errors.Is(err, stock.ErrUnknownProduct) {
		t.Errorf("the count of an unknown product: %v", err)
	}
}

// reset deletes the strategy's rows and sets the count, as PUT /stock/:id does.
func reset(t *testing.T, db *gorm.DB, s locks.Strategy, product int64, count int) {
	t.Helper()
	err := stock.NewLedger(db).Reset(t.Context(), product, count, func(tx *gorm.DB) error {
		return s.(locks.StockHolder).Restock(tx, product)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// counts fails the test unless the strategy's Count returns want for the product.
func counts(t *testing.T, s locks.Strategy, product int64, want int) {
	t.Helper()
	if got, err := s.(locks.StockHolder).Count(t.Context(), product); err != nil || got != want {
		t.Errorf("%d left, %v; want %d", got, err, want)
	}
}

func rowsOf(t *testing.T, db *gorm.DB, table string, product int64) (n int) {
	t.Helper()
	if err := db.Raw("SELECT COUNT(*) FROM "+table+" WHERE product = ?", product).Row().Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}
