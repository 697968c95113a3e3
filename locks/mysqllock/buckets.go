package mysqllock

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"oversell/locks"
	"oversell/stock"
)

// Buckets splits the count over rows, so that sales queue for sixteen rows and not for one:
// each takes from a row that it draws, as Atomic does from the only one.
//
// What lies in db_stock is in no bucket yet. Whoever finds too little in every bucket gathers
// all there is, takes his pieces, and deals the rest out again. That fills new buckets too, so
// nothing need be made ready, and a reset only throws the buckets away.
func Buckets(db *gorm.DB) locks.Strategy { return &buckets{db} }

type buckets struct{ db *gorm.DB }

// bucketsOf is how many buckets a product has.
const bucketsOf = 16

// bucket is a row of db_buckets.
type bucket struct {
	Product int64
	Bucket  int
	Count   int
}

// TableName is the migration's.
func (bucket) TableName() string { return "db_buckets" }

// errElsewhere says that no bucket has enough, but all together may.
var errElsewhere = fmt.Errorf("%w: no bucket has enough", stock.ErrConflict)

func (s *buckets) Deduct(ctx context.Context, o stock.Order) (r stock.Receipt, err error) {
	key := locks.Key(o.Product)
	r.Remaining = stock.Uncounted
	locks.Trace(ctx, locks.Asked, key, o.Owner, 0)
	// As with atomic, nothing is held and nothing is known meanwhile.
	if err := locks.Work(ctx, o.Work); err != nil {
		return r, err
	}
	locks.Trace(ctx, locks.Writing, key, o.Owner, 0)
	began, patience := time.Now(), newBackoff(o.Wait)
	for {
		r.Waited = time.Since(began) - r.Pooled
		var undealt int
		undealt, err = s.take(ctx, o, &r, patience.left())
		if errors.Is(err, errElsewhere) {
			err = s.gather(ctx, o, &r, patience.left(), undealt)
		}
		if errors.Is(err, errElsewhere) { // somebody has just dealt
			continue
		}
		if !stock.IsContention(err) {
			break
		}
		r.Retries++
		if !patience.pause(ctx) {
			return r, fmt.Errorf("%w: %w", locks.NotAcquired(ctx, key, o.Wait), err)
		}
	}
	if err == nil {
		locks.Trace(ctx, locks.Written, key, o.Owner, 0)
	}
	return r, err
}

// take draws a bucket, and another one as long as a look at them shows some with enough: at
// the end of the stock, many are tried that a rival has just emptied. With errElsewhere it
// returns how much is in no bucket yet.
func (s *buckets) take(ctx context.Context, o stock.Order, r *stock.Receipt, wait time.Duration) (undealt int, err error) {
	drawn := rand.N(bucketsOf) //nolint:gosec // no secret
	for {
		done, err := statement(ctx, s.db, r, wait,
			"UPDATE db_buckets SET count = count - ? WHERE product = ? AND bucket = ? AND count >= ?", o.Qty, o.Product, drawn, o.Qty)
		if err != nil {
			return 0, err
		}
		if found, _ := done.RowsAffected(); found == 1 { // the driver has it at hand, and no error
			return 0, nil
		}
		undealt, all, err := s.look(ctx, o.Product)
		if err != nil {
			return 0, err
		}
		if undealt+piecesIn(all) < o.Qty { // a piece whose sale may still be undone counts as there
			return 0, stock.ErrSoldOut
		}
		all = slices.DeleteFunc(all, func(b bucket) bool { return b.Count < o.Qty })
		if len(all) == 0 {
			return undealt, errElsewhere
		}
		r.Retries++
		drawn = all[rand.N(len(all))].Bucket //nolint:gosec // no secret
	}
}

// gather takes the pieces from all there is, in one transaction, and deals the rest out
// evenly; errElsewhere where somebody has dealt since that was seen. Without it, an order of
// three would be refused while three pieces lie in three buckets. Everybody locks in the same
// order, the row first, so there is no circle.
func (s *buckets) gather(ctx context.Context, o stock.Order, r *stock.Receipt, wait time.Duration, undealt int) error {
	return inTransaction(ctx, s.db, o, r, wait, func(tx *gorm.DB) error {
		// Who finds the row locked tries his luck with the buckets again, for it is being dealt.
		// Queuing for it, all would get it, one after the other, to see that that was done.
		item, err := lockRow(ctx, tx, o.Product, 0)
		if err != nil {
			return err
		}
		if item.Count != undealt {
			return errElsewhere
		}
		var all []bucket
		locking := clause.Locking{Strength: clause.LockingStrengthUpdate}
		if err := tx.Clauses(locking).Where("product = ?", o.Product).Order("bucket").Find(&all).Error; err != nil {
			return err
		}
		left := undealt + piecesIn(all) - o.Qty
		if left < 0 {
			return stock.ErrSoldOut
		}
		if err := tx.Exec("UPDATE db_stock SET count = 0 WHERE id = ?", o.Product).Error; err != nil {
			return err
		}
		return tx.Exec(dealt(o.Product, left)).Error
	})
}

// dealt is the statement that leaves so many pieces in the buckets.
func dealt(product int64, pieces int) string {
	rows := make([]string, bucketsOf)
	for i := range rows {
		rows[i] = fmt.Sprintf("(%d, %d, %d)", product, i, (pieces+i)/bucketsOf)
	}
	return "INSERT INTO db_buckets (product, bucket, count) VALUES " + strings.Join(rows, ", ") +
		" ON DUPLICATE KEY UPDATE count = VALUES(count)"
}

// look reads the row and the buckets in one statement: pieces on their way from one to the
// other are in one of them, not in both.
func (s *buckets) look(ctx context.Context, product int64) (undealt int, all []bucket, err error) {
	err = s.db.WithContext(ctx).Raw(
		"SELECT -1 AS bucket, count FROM db_stock WHERE id = ? UNION ALL SELECT bucket, count FROM db_buckets WHERE product = ? ORDER BY bucket",
		product, product).Scan(&all).Error
	if err != nil {
		return 0, nil, stock.NothingWritten(ctx, err)
	}
	if len(all) == 0 || all[0].Bucket >= 0 {
		return 0, nil, fmt.Errorf("product %d: %w", product, stock.ErrUnknownProduct)
	}
	return all[0].Count, all[1:], nil
}

func piecesIn(all []bucket) (sum int) {
	for _, b := range all {
		sum += b.Count
	}
	return sum
}

// Count is what can be sold, here and by those who sell from the row.
func (s *buckets) Count(ctx context.Context, product int64) (int, error) {
	undealt, all, err := s.look(ctx, product)
	return undealt + piecesIn(all), err
}

// Clear throws the buckets away.
func (s *buckets) Clear(ctx context.Context, key string) error {
	return clearTable(ctx, s.db, "db_buckets", key)
}

func (*buckets) Card() locks.Card {
	return locks.Card{
		ID: "buckets", Family: "mysql", Source: "beyond", Scope: locks.ScopeShared, Safe: true,
		Backends: []string{"mysql"}, CriticalStep: locks.Writing,
		Title: locks.Text{EN: "The count split over 16 rows", ZH: "库存分成 16 个桶"},
		Summary: locks.Text{
			EN: "A sale takes from one of 16 rows, drawn at random, so few queue for the same; near the end it must look for one that has any, and pieces too scattered for an order are gathered in a transaction.",
			ZH: "库存拆成 16 行，随机抽一行扣减，很少有人排同一个队；快卖完时要找还有货的桶，分散的几件在一个事务里先归拢再卖。",
		},
		Protects: []locks.Hazard{locks.Race, locks.ReplicaRace, locks.Crash, locks.Pause},
		Breaks:   []locks.Break{},
	}
}
