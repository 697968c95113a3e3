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

// TestSkipLockedSoldOutIsSure: the last piece is locked by one who then changes his mind.
// Who came meanwhile waits for that, and is not told that it is sold out.
func TestSkipLockedSoldOutIsSure(t *testing.T) {
	db := database(t, "")
	s, product := SkipLocked(db), newProduct(t, db, 1)
	ctx, hangUp := context.WithCancel(t.Context())
	defer hangUp()
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
		t.Errorf("one look at the last piece, which is locked: %v, want %v", err, locks.ErrNotAcquired)
	}
	if _, err := s.Deduct(t.Context(), stock.Order{Product: product, Qty: 2, Owner: "greedy"}); !errors.Is(err, stock.ErrSoldOut) {
		t.Errorf("two of one: %v", err)
	}
	patient := make(chan error, 1)
	go func() {
		_, err := s.Deduct(t.Context(), stock.Order{Product: product, Qty: 1, Owner: "patient", Wait: time.Minute})
		patient <- err
	}()
	soon(t, "the patient one waits for the piece", func() bool { return waitingFor(t, db, "SELECT `id` FROM `db_units`%FOR UPDATE") })
	hangUp()
	if err := <-fickle; !errors.Is(err, stock.ErrCancelled) {
		t.Errorf("the one who hung up: %v", err)
	}
	if err := <-patient; err != nil {
		t.Errorf("the one who waited for what he gave back: %v", err)
	}
	if _, err := s.Deduct(t.Context(), stock.Order{Product: product, Qty: 1, Owner: "late"}); !errors.Is(err, stock.ErrSoldOut) {
		t.Errorf("now it is sold out: %v", err)
	}
}

// TestSkipLockedBrings: many find the counter empty at once, again and again. No piece is
// brought twice, none is lost on the way, and an order for several gets them together.
func TestSkipLockedBrings(t *testing.T) {
	db := database(t, "")
	s, product := SkipLocked(db), newProduct(t, db, 2*restockSize+5)
	sold, soldOut := sellAll(t, s, product, restockSize, 3) // 3000 asked for
	if len(sold) != 668 || soldOut != restockSize-668 {
		t.Errorf("%d sales of 3 and %d refusals of %d pieces", len(sold), soldOut, 2*restockSize+5)
	}
	counts(t, s, product, 1)
	if item, err := stock.NewLedger(db).Read(t.Context(), product); err != nil || item.Count != 0 {
		t.Errorf("%d pieces stayed in the store-room, %v", item.Count, err)
	}
}

// TestSkipLockedCrash: who dies with pieces in his arms has moved none.
func TestSkipLockedCrash(t *testing.T) {
	db, dying := database(t, ""), database(t, "")
	power := errors.New("power cut")
	err := dying.Callback().Create().Before("gorm:create").Register("crash", func(tx *gorm.DB) { _ = tx.AddError(power) })
	if err != nil {
		t.Fatal(err)
	}
	product := newProduct(t, db, 7)
	if _, err := SkipLocked(dying).Deduct(t.Context(), stock.Order{Product: product, Qty: 1, Owner: "dying"}); !errors.Is(err, power) || !locks.NothingTaken(err) {
		t.Errorf("the sale that died: %v", err)
	}
	counts(t, SkipLocked(db), product, 7)
	if _, err := SkipLocked(db).Deduct(t.Context(), stock.Order{Product: product, Qty: 7, Owner: "next"}); err != nil {
		t.Errorf("the next: %v", err)
	}
}

// TestSkipLockedReset: a product that is reset has its new count, and no row of it is made
// before somebody buys it this way.
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
		t.Errorf("%d pieces on the counter, want %d", n, restockSize-1)
	}
	if _, err := s.(locks.StockHolder).Count(t.Context(), 1<<60); !errors.Is(err, stock.ErrUnknownProduct) {
		t.Errorf("the count of what nobody has: %v", err)
	}
}

// reset does what PUT /stock/:id does.
func reset(t *testing.T, db *gorm.DB, s locks.Strategy, product int64, count int) {
	t.Helper()
	cleared := s.(locks.Cleaner).Clear(t.Context(), api.Key(product))
	if err := errors.Join(cleared, stock.NewLedger(db).Reset(t.Context(), product, count)); err != nil {
		t.Fatal(err)
	}
}

// counts fails where the strategy does not count so many pieces.
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
