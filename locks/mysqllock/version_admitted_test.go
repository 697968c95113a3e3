package mysqllock

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"oversell/api"
	"oversell/locks"
	"oversell/stock"
)

func TestPace(t *testing.T) {
	for _, test := range []struct {
		name        string
		share, want float64
		err         error
	}{
		{"a sale", 0.25, 0.75, nil},
		{"a sale at full pace", 1, 1, nil},
		{"a conflict", 1, 0.75, stock.ErrConflict},
		{"a conflict at the slowest", smallestShare, smallestShare, stock.ErrConflict},
		{"sold out", 0.5, 0.5, stock.ErrSoldOut},
	} {
		p := &pace{share: test.share}
		if p.adjust(time.Millisecond, test.err); p.share != test.want || p.took <= 0 {
			t.Errorf("%s: from %v to %v, want %v; an attempt takes %v", test.name, test.share, p.share, test.want, p.took)
		}
	}
}

// TestAdmittedOneAtATime checks that requests of one process have no conflicts. After the last
// request for a product, the product's pace must be deleted.
func TestAdmittedOneAtATime(t *testing.T) {
	db := database(t, "")
	s := &versionAdmitted{cas: version{db, stock.NewLedger(db)}, paces: map[int64]*pace{}}
	product := newProduct(t, db, 100)
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			for range 5 {
				r, err := s.Deduct(t.Context(), stock.Order{Product: product, Qty: 1, Owner: newKey(), Wait: time.Minute})
				if err != nil || r.Retries != 0 {
					t.Errorf("%+v, %v; want a sale at the first attempt", r, err)
				}
			}
		})
	}
	all.Wait()
	if len(s.paces) != 0 {
		t.Errorf("it keeps %d paces", len(s.paces))
	}
	_, err := s.Deduct(t.Context(), stock.Order{Product: product, Qty: 1, Owner: "late", Wait: time.Minute})
	if !errors.Is(err, stock.ErrSoldOut) {
		t.Errorf("after the last piece: %v", err)
	}
}

// TestVersionsGiveUp checks that a sale with a version returns ErrConflict if all its attempts fail,
// and that the receipt counts the retries. A request that is not admitted in time must get ErrNotAcquired.
func TestVersionsGiveUp(t *testing.T) {
	db := database(t, "")
	for _, s := range []locks.Strategy{Version(db), VersionNaive(db), VersionAdmitted(db)} {
		product, behind := newProduct(t, db, 5), sync.Once{}
		// Another request changes the row between each read of this sale and the following write.
		ctx := locks.WithTracer(t.Context(), func(_ context.Context, e api.Event) {
			if e.Step != api.Read {
				return
			}
			if err := db.Exec("UPDATE db_stock SET version = version + 1 WHERE id = ?", product).Error; err != nil {
				t.Error(err)
			}
			if s.Card().ID == "version-admitted" {
				behind.Do(func() {
					_, err := s.Deduct(t.Context(), stock.Order{Product: product, Qty: 1, Owner: "behind"})
					if !errors.Is(err, locks.ErrNotAcquired) {
						t.Errorf("one try, while another request tries: %v", err)
					}
				})
			}
		})
		r, err := s.Deduct(ctx, stock.Order{Product: product, Qty: 1, Owner: "unlucky", Wait: 500 * time.Millisecond})
		if !errors.Is(err, stock.ErrConflict) || r.Retries < 2 {
			t.Errorf("%s: %d retries, %v; want %v", s.Card().ID, r.Retries, err, stock.ErrConflict)
		}
		item, err := stock.NewLedger(db).Read(t.Context(), product)
		if err != nil || item.Count != 5 {
			t.Errorf("%s: %d left, %v", s.Card().ID, item.Count, err)
		}
	}
}
