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

// long is a lease that outlives every test, short one whose end is waited for.
const (
	long  = time.Hour
	short = 200 * time.Millisecond
)

// TestReservationLateConfirm: the last piece is reserved, runs out, and is sold to a rival.
// The one who slept meanwhile is refused.
func TestReservationLateConfirm(t *testing.T) {
	db := database(t, "")
	s, product := Reservation(db, long), newProduct(t, db, 1)
	there, goOn := make(chan struct{}), make(chan struct{})
	ctx := locks.WithTracer(t.Context(), func(_ context.Context, e api.Event) {
		if e.Step == api.Writing {
			close(there)
			<-goOn
		}
	})
	late := make(chan error, 1)
	go func() {
		_, err := s.Deduct(ctx, stock.Order{Product: product, Qty: 1, Owner: "sleeper", Lease: short})
		late <- err
	}()
	<-there
	soon(t, "the piece is for sale again", func() bool {
		_, err := s.Deduct(t.Context(), stock.Order{Product: product, Qty: 1, Owner: "rival"})
		if err != nil && !errors.Is(err, stock.ErrSoldOut) {
			t.Error(err)
		}
		return err == nil
	})
	close(goOn)
	if err := <-late; !errors.Is(err, locks.ErrLost) || !locks.NothingTaken(err) {
		t.Errorf("the late confirmation: %v", err)
	}
	books(t, db, product, 0, 0)
}

// TestReservationLate: nobody has wanted the piece since it ran out. It is not sold all the same.
func TestReservationLate(t *testing.T) {
	db := database(t, "")
	s, product := Reservation(db, long), newProduct(t, db, 3)
	ctx := locks.WithTracer(t.Context(), func(_ context.Context, e api.Event) {
		if e.Step == reserved {
			soon(t, "it runs out", func() bool {
				n, err := s.(locks.StockHolder).Count(t.Context(), product)
				return err == nil && n == 3
			})
		}
	})
	_, err := s.Deduct(ctx, stock.Order{Product: product, Qty: 2, Owner: "slow", Lease: short})
	if !errors.Is(err, locks.ErrLost) {
		t.Errorf("confirmed too late: %v", err)
	}
	books(t, db, product, 3, 0) // he put them back himself
}

// TestReservationCrash: who dies with pieces set aside keeps them until they run out. At
// every moment, initial = remaining + sold + reserved (I5).
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
				t.Errorf("what a dead one has reserved: %v", err)
			}
			counts(t, s, product, 2)
			continue
		}
		soon(t, "it comes back", func() bool { return three() == nil })
		books(t, db, product, 1, 0)
		counts(t, s, product, 1)
	}
}

// TestReservationReturnsOnce: many find the shelf empty at once, and what has run out. Each
// piece comes back once.
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
		t.Errorf("%d sold, %d told that it is sold out", len(left), soldOut)
	}
	books(t, db, product, 0, 0)
}

// TestReservationHangUp: who hangs up while he works gives back what he has set aside, at once.
func TestReservationHangUp(t *testing.T) {
	db := database(t, "")
	s, product := Reservation(db, long), newProduct(t, db, 5)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	traced := locks.WithTracer(ctx, func(_ context.Context, e api.Event) {
		if e.Step == reserved {
			books(t, db, product, 3, 2)
			cancel()
		}
	})
	_, err := s.Deduct(traced, stock.Order{Product: product, Qty: 2, Owner: "fickle", Work: time.Hour})
	if !errors.Is(err, stock.ErrCancelled) {
		t.Errorf("hung up: %v", err)
	}
	books(t, db, product, 5, 0)
}

// TestReservationLostCommit: the pieces are set aside, and the answer is lost. They are for sale
// again at once, not when they run out, which is in an hour.
func TestReservationLostCommit(t *testing.T) {
	line, db := viaLine(t)
	s, product := Reservation(db, long), newProduct(t, db, 5)
	line.LoseAnswer("COMMIT")
	_, err := s.Deduct(t.Context(), stock.Order{Product: product, Qty: 2, Owner: "unlucky"})
	if !errors.Is(err, stock.ErrUnavailable) {
		t.Errorf("without an answer: %v", err)
	}
	backOnTheShelf(t, db, product, 5)
}

// TestReservationOutage: MySQL goes away with pieces set aside. What is not confirmed is for
// sale again when it is back.
func TestReservationOutage(t *testing.T) {
	line, db := viaLine(t)
	s, product := Reservation(db, long), newProduct(t, db, 5)
	ctx := locks.WithTracer(t.Context(), func(_ context.Context, e api.Event) {
		if e.Step == reserved {
			line.Cut(true)
		}
	})
	_, err := s.Deduct(ctx, stock.Order{Product: product, Qty: 2, Owner: "unlucky"})
	line.Cut(false)
	if err == nil {
		t.Error("sold without a server")
	}
	if locks.NothingTaken(err) {
		backOnTheShelf(t, db, product, 5)
	}
}

// backOnTheShelf waits until all pieces are there, and none is set aside.
func backOnTheShelf(t *testing.T, db *gorm.DB, product int64, count int) {
	t.Helper()
	soon(t, "they are back on the shelf", func() bool {
		item, err := stock.NewLedger(db).Read(t.Context(), product)
		return err == nil && item.Count == count
	})
	books(t, db, product, count, 0)
}

// TestReservationReset forgets what was set aside: its confirmation comes too late.
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

// books fails where the shelf has not so many pieces, or not so many are set aside.
func books(t *testing.T, db *gorm.DB, product int64, shelf, setAside int) {
	t.Helper()
	var noted int
	if err := db.Raw("SELECT COALESCE(SUM(qty), 0) FROM db_reservations WHERE product = ?", product).Row().Scan(&noted); err != nil {
		t.Error(err)
	}
	item, err := stock.NewLedger(db).Read(context.Background(), product)
	if err != nil || item.Count != shelf || noted != setAside {
		t.Errorf("%d on the shelf and %d set aside, %v; want %d and %d", item.Count, noted, err, shelf, setAside)
	}
}
