package mysqllock

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	"gorm.io/gorm"

	"oversell/api"
	"oversell/locks"
	"oversell/stock"
)

// The long lease does not expire during a test. Tests wait until the short lease ends.
const (
	long  = time.Hour
	short = 200 * time.Millisecond
)

// TestReservationLate checks that an expired reservation cannot be confirmed, even if no other
// request wanted its pieces.
func TestReservationLate(t *testing.T) {
	db := database(t, "")
	s, product := Reservation(db, long), newProduct(t, db, 3)
	ctx := locks.WithTracer(t.Context(), func(_ context.Context, e api.Event) {
		if e.Step == reserved {
			soon(t, "the reservation expires", func() bool {
				n, err := s.(locks.StockHolder).Count(t.Context(), product)
				return err == nil && n == 3
			})
		}
	})
	_, err := s.Deduct(ctx, stock.Order{Product: product, Qty: 2, Owner: "slow", Lease: short})
	if !errors.Is(err, locks.ErrLost) {
		t.Errorf("confirmed too late: %v", err)
	}
	books(t, db, product, 3, 0) // giveUp has returned the pieces to the stock
}

// TestReservationCrash checks that the pieces of a crashed request stay reserved until their lease
// ends. At every moment, initial = remaining + sold + reserved (reconciliation).
func TestReservationCrash(t *testing.T) {
	db := database(t, "")
	for _, lease := range []time.Duration{long, short} {
		s, product := Reservation(db, lease), newProduct(t, db, 5)
		if r, err := s.Deduct(t.Context(), stock.Order{Product: product, Qty: 1, Owner: "first"}); err != nil || r.Remaining != stock.Uncounted {
			t.Fatalf("%+v, %v", r, err)
		}
		dead := make(chan struct{})
		go func() {
			defer close(dead)
			ctx := locks.WithTracer(t.Context(), func(_ context.Context, e api.Event) {
				if e.Step == reserved {
					runtime.Goexit()
				}
			})
			_, _ = s.Deduct(ctx, stock.Order{Product: product, Qty: 2, Owner: "dying"})
		}()
		<-dead
		books(t, db, product, 2, 2)
		three := func() error {
			_, err := s.Deduct(t.Context(), stock.Order{Product: product, Qty: 3, Owner: "next"})
			return err
		}
		if lease == long {
			if err := three(); !errors.Is(err, stock.ErrSoldOut) {
				t.Errorf("pieces that a crashed request has reserved: %v", err)
			}
			counts(t, s, product, 2)
			continue
		}
		soon(t, "the pieces are for sale again", func() bool { return three() == nil })
		books(t, db, product, 1, 0)
		counts(t, s, product, 1)
	}
}

// TestReservationReturnsOnce lets concurrent requests find an empty stock and expired reservations.
// Each piece must be returned once.
func TestReservationReturnsOnce(t *testing.T) {
	db := database(t, "")
	s, product := Reservation(db, long), newProduct(t, db, 0)
	for range 10 {
		err := db.Exec("INSERT INTO db_reservations (product, qty, expires_at) VALUES (?, 2, UTC_TIMESTAMP(6))", product).Error
		if err != nil {
			t.Fatal(err)
		}
	}
	counts(t, s, product, 20)
	left, soldOut := sellAll(t, s, product, 40, 1)
	if len(left) != 20 || soldOut != 20 {
		t.Errorf("%d sold, %d rejected as sold out", len(left), soldOut)
	}
	books(t, db, product, 0, 0)
}

// TestReservationLostCommit loses the answer to the COMMIT of a reservation. The pieces must be for
// sale again at once, not after the lease of one hour.
func TestReservationLostCommit(t *testing.T) {
	link, db := viaLink(t)
	s, product := Reservation(db, long), newProduct(t, db, 5)
	link.LoseAnswer("COMMIT")
	_, err := s.Deduct(t.Context(), stock.Order{Product: product, Qty: 2, Owner: "unlucky"})
	if !errors.Is(err, stock.ErrUnavailable) {
		t.Errorf("without an answer: %v", err)
	}
	awaitReturn(t, db, product, 5)
}

// TestReservationOutage makes MySQL unreachable while pieces are reserved. After the outage, the
// pieces of unconfirmed reservations must be for sale again.
func TestReservationOutage(t *testing.T) {
	link, db := viaLink(t)
	s, product := Reservation(db, long), newProduct(t, db, 5)
	ctx := locks.WithTracer(t.Context(), func(_ context.Context, e api.Event) {
		if e.Step == reserved {
			link.Cut(true)
		}
	})
	_, err := s.Deduct(ctx, stock.Order{Product: product, Qty: 2, Owner: "unlucky"})
	link.Cut(false)
	if err == nil {
		t.Error("sold without a server")
	}
	if locks.NothingTaken(err) {
		awaitReturn(t, db, product, 5)
	}
}

// awaitReturn waits until all pieces are in the stock, and none is reserved.
func awaitReturn(t *testing.T, db *gorm.DB, product int64, count int) {
	t.Helper()
	soon(t, "the pieces are in the stock again", func() bool {
		item, err := stock.NewLedger(db).Read(t.Context(), product)
		return err == nil && item.Count == count
	})
	books(t, db, product, count, 0)
}

// TestReservationReset checks that a reset deletes reservations, so they cannot be confirmed.
func TestReservationReset(t *testing.T) {
	db := database(t, "")
	s, product := Reservation(db, long), newProduct(t, db, 5)
	ctx := locks.WithTracer(t.Context(), func(_ context.Context, e api.Event) {
		if e.Step == reserved {
			reset(t, db, s, product, 5000)
		}
	})
	if _, err := s.Deduct(ctx, stock.Order{Product: product, Qty: 1, Owner: "yesterday's"}); !errors.Is(err, locks.ErrLost) {
		t.Errorf("reserved before the reset: %v", err)
	}
	books(t, db, product, 5000, 0)
	counts(t, s, product, 5000)
}

// books fails the test unless inStock pieces are in stock and setAside pieces are reserved.
func books(t *testing.T, db *gorm.DB, product int64, inStock, setAside int) {
	t.Helper()
	var noted int
	if err := db.Raw("SELECT COALESCE(SUM(qty), 0) FROM db_reservations WHERE product = ?", product).Row().Scan(&noted); err != nil {
		t.Error(err)
	}
	item, err := stock.NewLedger(db).Read(context.Background(), product)
	if err != nil || item.Count != inStock || noted != setAside {
		t.Errorf("%d in stock and %d reserved, %v; want %d and %d", item.Count, noted, err, inStock, setAside)
	}
}
