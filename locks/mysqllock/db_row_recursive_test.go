package mysqllock

import (
	"errors"
	"testing"
	"time"

	"oversell/api"
	"oversell/stock"
)

// TestRecursiveTakesSeveral lets a request wait for a lock that is never released. For each failed
// INSERT, the request must take one piece without the lock. A request that takes none is sold out.
func TestRecursiveTakesSeveral(t *testing.T) {
	db := database(t, "")
	s, product := DBRowRecursive(db), newProduct(t, db, 1000)
	order := stock.Order{Product: product, Qty: 1, Owner: "buyer", Wait: time.Minute}
	if r, err := s.Deduct(t.Context(), order); err != nil || r.Remaining != 999 || r.Retries != 0 {
		t.Errorf("with a free lock: %+v, %v", r, err)
	}
	rows := dbRowNaive{db}
	holder, err := rows.insert(t.Context(), recursivePrefix+api.Key(product))
	if err != nil || holder == 0 {
		t.Fatal(holder, err)
	}
	order.Wait = 5 * naivePause
	r, err := s.Deduct(t.Context(), order)
	if err != nil || r.Retries < 2 || r.Remaining != 999-r.Retries {
		t.Errorf("%+v, %v; want one piece for each failed INSERT", r, err)
	}
	if err := rows.remove(t.Context(), holder); err != nil {
		t.Errorf("the holder's row: %v", err)
	}
	order.Qty = 1000
	if _, err := s.Deduct(t.Context(), order); !errors.Is(err, stock.ErrSoldOut) {
		t.Errorf("1000 of %d pieces: %v", r.Remaining, err)
	}
}
