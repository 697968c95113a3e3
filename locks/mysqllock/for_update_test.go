package mysqllock

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"oversell/api"
	"oversell/locks"
	"oversell/stock"
)

// TestForUpdateWaiters checks that timed-out and cancelled requests get different errors, take no
// piece, and do not block other requests.
func TestForUpdateWaiters(t *testing.T) {
	db := database(t, "")
	s, product := ForUpdate(db), newProduct(t, db, 5)
	unlock := lockRowOf(t, db, "SELECT count FROM db_stock WHERE id = ? FOR UPDATE", product)
	began := time.Now()
	_, err := s.Deduct(t.Context(), stock.Order{Product: product, Qty: 1, Owner: "impatient", Wait: 300 * time.Millisecond})
	if took := time.Since(began); !errors.Is(err, locks.ErrNotAcquired) || took < 300*time.Millisecond {
		t.Errorf("a wait of 300ms ended after %v with %v", took, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(100*time.Millisecond, cancel)
	_, err = s.Deduct(ctx, stock.Order{Product: product, Qty: 1, Owner: "fickle", Wait: time.Minute})
	if !locks.NothingTaken(err) || !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled request: %v", err)
	}
	_, err = s.Deduct(t.Context(), stock.Order{Product: product, Qty: 1, Owner: "one look"})
	if !errors.Is(err, locks.ErrNotAcquired) {
		t.Errorf("one try with a locked row: %v", err)
	}
	unlock()
	r, err := s.Deduct(t.Context(), stock.Order{Product: product, Qty: 1, Owner: "next", Wait: 20 * time.Second})
	if err != nil || r.Remaining != 4 {
		t.Errorf("after them: %+v, %v", r, err)
	}
}

// TestForUpdateOutlastsInnoDB checks that a sale can wait for longer than the 2 s after which
// InnoDB ends a statement that waits for a row lock (stock.Open).
func TestForUpdateOutlastsInnoDB(t *testing.T) {
	db := database(t, "")
	s, product := ForUpdate(db), newProduct(t, db, 5)
	locked := newProduct(t, db, 5)
	unlock := lockRowOf(t, db, "SELECT count FROM db_stock WHERE id = ? FOR UPDATE", locked)
	defer unlock()
	_, err := s.Deduct(t.Context(), stock.Order{Product: locked, Qty: 1, Owner: "patient", Wait: 2200 * time.Millisecond})
	if err == nil || !strings.Contains(err.Error(), "within 2.2s") { // not what InnoDB has left of it
		t.Errorf("after a wait of 2.2s: %v", err)
	}
	time.AfterFunc(2500*time.Millisecond, lockRowOf(t, db, "SELECT count FROM db_stock WHERE id = ? FOR UPDATE", product))
	r, err := s.Deduct(t.Context(), stock.Order{Product: product, Qty: 1, Owner: "patient", Wait: 20 * time.Second})
	if err != nil || r.Remaining != 4 || r.Retries == 0 {
		t.Errorf("%+v, %v; want a sale after a retry", r, err)
	}
}

// TestVersionGivesUp checks that a sale returns ErrConflict if all its attempts fail, and that the
// receipt counts the retries.
func TestVersionGivesUp(t *testing.T) {
	db := database(t, "")
	s, product := Version(db), newProduct(t, db, 5)
	// Another request changes the row between each read of this sale and the following write.
	ctx := locks.WithTracer(t.Context(), func(_ context.Context, e api.Event) {
		if e.Step == api.Read {
			if err := db.Exec("UPDATE db_stock SET version = version + 1 WHERE id = ?", product).Error; err != nil {
				t.Error(err)
			}
		}
	})
	r, err := s.Deduct(ctx, stock.Order{Product: product, Qty: 1, Owner: "unlucky", Wait: 300 * time.Millisecond})
	if !errors.Is(err, stock.ErrConflict) || r.Retries < 2 {
		t.Errorf("%d retries, %v; want %v", r.Retries, err, stock.ErrConflict)
	}
	item, err := stock.NewLedger(db).Read(t.Context(), product)
	if err != nil || item.Count != 5 {
		t.Errorf("%d left, %v", item.Count, err)
	}
}
