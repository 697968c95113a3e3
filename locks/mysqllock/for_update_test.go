package mysqllock

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"oversell/locks"
	"oversell/stock"
)

// TestRowWaiters checks that timed-out and cancelled requests get different errors, take no piece,
// and do not block other requests.
func TestRowWaiters(t *testing.T) {
	db := database(t, "")
	for _, s := range []locks.Strategy{ForUpdate(db), ShareMode(db)} {
		product := newProduct(t, db, 5)
		unlock := lockRowOf(t, db, "SELECT count FROM db_stock WHERE id = ? FOR UPDATE", product)
		for _, wait := range []time.Duration{0, 300 * time.Millisecond} {
			began := time.Now()
			_, err := s.Deduct(t.Context(), stock.Order{Product: product, Qty: 1, Owner: "impatient", Wait: wait})
			if took := time.Since(began); !errors.Is(err, locks.ErrNotAcquired) || took < wait {
				t.Errorf("%s: a wait of %v ended after %v with %v", s.Card().ID, wait, took, err)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(100*time.Millisecond, cancel)
		_, err := s.Deduct(ctx, stock.Order{Product: product, Qty: 1, Owner: "fickle", Wait: time.Minute})
		if !locks.NothingTaken(err) || !errors.Is(err, context.Canceled) {
			t.Errorf("%s: a cancelled request: %v", s.Card().ID, err)
		}
		unlock()
		r, err := s.Deduct(t.Context(), stock.Order{Product: product, Qty: 1, Owner: "next", Wait: 20 * time.Second})
		if err != nil || r.Remaining != 4 {
			t.Errorf("%s: after them: %+v, %v", s.Card().ID, r, err)
		}
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
