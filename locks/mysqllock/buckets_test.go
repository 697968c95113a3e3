package mysqllock

import (
	"errors"
	"testing"

	"gorm.io/gorm"

	"oversell/locks"
	"oversell/stock"
)

// TestBucketsScattered puts three pieces into three buckets. An order of four pieces must be
// rejected, and an order of three pieces must succeed.
func TestBucketsScattered(t *testing.T) {
	db := database(t, "")
	s, product := Buckets(db), newProduct(t, db, 0)
	if err := db.Exec(distribute(product, 3)).Error; err != nil {
		t.Fatal(err)
	}
	if most := fullest(t, db, product); most != 1 {
		t.Fatalf("%d pieces in one bucket", most)
	}
	if _, err := s.Deduct(t.Context(), stock.Order{Product: product, Qty: 4, Owner: "greedy"}); !errors.Is(err, stock.ErrSoldOut) {
		t.Errorf("four of three: %v", err)
	}
	counts(t, s, product, 3)
	if _, err := s.Deduct(t.Context(), stock.Order{Product: product, Qty: 3, Owner: "family"}); err != nil {
		t.Errorf("three of three: %v", err)
	}
	counts(t, s, product, 0)
}

// TestBucketsToTheLast sends concurrent orders for more pieces than there are. Each piece must be
// sold once, and fewer pieces than one order needs may be left.
func TestBucketsToTheLast(t *testing.T) {
	db := database(t, "")
	s := Buckets(db)
	for qty := 1; qty <= 3; qty++ {
		const pieces, asked = 100, 140
		product := newProduct(t, db, pieces)
		sold, soldOut := sellAll(t, s, product, asked, qty)
		if len(sold) != pieces/qty || soldOut != asked-pieces/qty {
			t.Errorf("%d sales of %d and %d rejected orders of %d pieces", len(sold), qty, soldOut, pieces)
		}
		counts(t, s, product, pieces%qty)
	}
}

// TestBucketsDistribution checks that distribute puts all pieces evenly into the buckets.
func TestBucketsDistribution(t *testing.T) {
	db := database(t, "")
	for _, pieces := range []int{0, 1, bucketCount - 1, bucketCount, 5000} {
		product := newProduct(t, db, 0)
		if err := db.Exec(distribute(product, pieces)).Error; err != nil {
			t.Fatal(err)
		}
		counts(t, Buckets(db), product, pieces)
		if most := fullest(t, db, product); most != (pieces+bucketCount-1)/bucketCount {
			t.Errorf("%d pieces, %d of them in one bucket", pieces, most)
		}
	}
}

// TestBucketsCrash checks that a crash during the distribution leaves the stock unchanged.
func TestBucketsCrash(t *testing.T) {
	db, dying := database(t, ""), database(t, "")
	power := errors.New("power cut")
	// The first raw statement of the transaction empties the row, and the second fills the buckets.
	statements := 0
	err := dying.Callback().Raw().Before("gorm:raw").Register("crash", func(tx *gorm.DB) {
		if statements++; statements == 2 {
			_ = tx.AddError(power)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	product := newProduct(t, db, 7)
	if _, err := Buckets(dying).Deduct(t.Context(), stock.Order{Product: product, Qty: 1, Owner: "dying"}); !errors.Is(err, power) || !locks.NothingTaken(err) {
		t.Errorf("the sale that crashed: %v", err)
	}
	if item, err := stock.NewLedger(db).Read(t.Context(), product); err != nil || item.Count != 7 || statements != 2 {
		t.Errorf("%d in the row after %d statements, %v", item.Count, statements, err)
	}
	counts(t, Buckets(db), product, 7)
}

// TestBucketsReset checks that after a reset, a product has its new count, and no buckets until its
// next sale.
func TestBucketsReset(t *testing.T) {
	db := database(t, "")
	s, product := Buckets(db), newProduct(t, db, 300)
	for range 2 {
		r, err := s.Deduct(t.Context(), stock.Order{Product: product, Qty: 1, Owner: "buyer"})
		if err != nil || r.Remaining != stock.Uncounted {
			t.Fatalf("%+v, %v", r, err)
		}
		if n := rowsOf(t, db, "db_buckets", product); n != bucketCount {
			t.Errorf("%d buckets", n)
		}
		reset(t, db, s, product, 5000)
		counts(t, s, product, 5000)
		if n := rowsOf(t, db, "db_buckets", product); n != 0 {
			t.Errorf("the reset left %d buckets", n)
		}
	}
	if _, err := s.(locks.StockHolder).Count(t.Context(), 1<<60); !errors.Is(err, stock.ErrUnknownProduct) {
		t.Errorf("the count of an unknown product: %v", err)
	}
}

// fullest returns the count of the fullest bucket.
func fullest(t *testing.T, db *gorm.DB, product int64) (most int) {
	t.Helper()
	if err := db.Raw("SELECT MAX(count) FROM db_buckets WHERE product = ?", product).Row().Scan(&most); err != nil {
		t.Fatal(err)
	}
	return most
}
