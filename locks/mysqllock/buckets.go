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

	"oversell/api"
	"oversell/locks"
	"oversell/stock"
)

// Buckets splits the count over sixteen rows, so that sales do not all queue for one row. Each sale
// takes its pieces from a random row, with one conditional UPDATE as in Atomic. The pieces that
// db_stock counts are in no bucket yet. If no bucket has enough pieces, a sale collects all pieces
// in one transaction, takes its own, and distributes the rest evenly. The first sale of a product
// fills the buckets in this way, so a reset only deletes them.
func Buckets(db *gorm.DB) locks.Strategy { return &buckets{db} }

type buckets struct{ db *gorm.DB }

const bucketCount = 16

type bucket struct {
	Product int64
	Bucket  int
	Count   int
}

// TableName returns the name of the table, for GORM.
func (bucket) TableName() string { return "db_buckets" }

// errScattered means that no single bucket has enough pieces, but all buckets together may.
var errScattered = fmt.Errorf("%w: no bucket has enough pieces", stock.ErrConflict)

func (s *buckets) Deduct(ctx context.Context, o stock.Order) (r stock.Receipt, err error) {
	r.Remaining = stock.Uncounted
	err = workThenWrite(ctx, o, &r, func(wait time.Duration) error {
		for {
			unassigned, err := s.take(ctx, o, &r, wait)
			if errors.Is(err, errScattered) {
				err = s.gather(ctx, o, &r, wait, unassigned)
			}
			if !errors.Is(err, errScattered) { // else retry, because another sale moved pieces
				return err
			}
		}
	})
	return r, err
}

// take sells from a random bucket. While it has too few pieces but another bucket has enough, take
// tries again. With errScattered, take also returns db_stock's count: the pieces in no bucket yet.
func (s *buckets) take(ctx context.Context, o stock.Order, r *stock.Receipt, wait time.Duration) (unassigned int, err error) {
	drawn := rand.N(bucketCount) //nolint:gosec // no secret
	for {
		done, err := statement(ctx, s.db, r, wait,
			"UPDATE db_buckets SET count = count - ? WHERE product = ? AND bucket = ? AND count >= ?", o.Qty, o.Product, drawn, o.Qty)
		if err != nil {
			return 0, err
		}
		if found, _ := done.RowsAffected(); found == 1 { // the driver never returns an error
			return 0, nil
		}
		unassigned, all, err := s.read(ctx, o.Product)
		if err != nil {
			return 0, err
		}
		if unassigned+piecesIn(all) < o.Qty { // the sum includes pieces of uncommitted sales
			return 0, stock.ErrSoldOut
		}
		all = slices.DeleteFunc(all, func(b bucket) bool { return b.Count < o.Qty })
		if len(all) == 0 {
			return unassigned, errScattered
		}
		r.Retries++
		drawn = all[rand.N(len(all))].Bucket //nolint:gosec // no secret
	}
}

// gather collects all pieces, so that three buckets with one piece each can serve an order of
// three. It returns errScattered if another sale changed db_stock's row since the buckets were
// read. gather always locks that row before the buckets, so no two sales deadlock.
func (s *buckets) gather(ctx context.Context, o stock.Order, r *stock.Receipt, wait time.Duration, unassigned int) error {
	return locks.InTransaction(ctx, s.db, o, r, wait, func(tx *gorm.DB) error {
		// Do not wait for a locked row: the sale that locked it fills the buckets for the next attempt.
		item, err := lockRow(ctx, tx, o.Product, 0)
		if err != nil {
			return err
		}
		if item.Count != unassigned {
			return errScattered
		}
		var all []bucket
		locking := clause.Locking{Strength: clause.LockingStrengthUpdate}
		if err := tx.Clauses(locking).Where("product = ?", o.Product).Order("bucket").Find(&all).Error; err != nil {
			return err
		}
		left := unassigned + piecesIn(all) - o.Qty
		if left < 0 {
			return stock.ErrSoldOut
		}
		if err := tx.Exec("UPDATE db_stock SET count = 0 WHERE id = ?", o.Product).Error; err != nil {
			return err
		}
		return tx.Exec(distribute(o.Product, left)).Error
	})
}

func distribute(product int64, pieces int) string {
	rows := make([]string, bucketCount)
	for i := range rows {
		rows[i] = fmt.Sprintf("(%d, %d, %d)", product, i, (pieces+i)/bucketCount)
	}
	return "INSERT INTO db_buckets (product, bucket, count) VALUES " + strings.Join(rows, ", ") +
		" ON DUPLICATE KEY UPDATE count = VALUES(count)"
}

// read reads the db_stock row and the buckets in one statement, so each piece is counted once.
func (s *buckets) read(ctx context.Context, product int64) (unassigned int, all []bucket, err error) {
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

func (s *buckets) Count(ctx context.Context, product int64) (int, error) {
	unassigned, all, err := s.read(ctx, product)
	return unassigned + piecesIn(all), err
}

func (s *buckets) Holds(ctx context.Context, product int64) (bool, error) {
	_, all, err := s.read(ctx, product)
	return piecesIn(all) > 0, err
}

func (*buckets) Restock(tx *gorm.DB, product int64) error {
	return tx.Exec("DELETE FROM db_buckets WHERE product = ?", product).Error
}

func (*buckets) Card() api.Card {
	return api.Card{
		ID: "buckets", Family: "mysql", Source: "beyond", Scope: api.ScopeShared, Safe: true,
		Backends: []string{"mysql"}, CriticalStep: api.Writing,
		Title: api.Text{EN: "The count split over 16 rows", ZH: "库存分成 16 个桶"},
		Summary: api.Text{
			EN: "A sale takes from one of 16 rows, drawn at random, so few sales queue for the same row. Near the end of the stock, a sale must search for a bucket that is not empty, and collects the remaining pieces in a transaction.",
			ZH: "库存拆成 16 行，随机选一行扣减，很少有请求竞争同一行；快卖完时要查找还有库存的桶，并在一个事务里把剩余的几件合并后再扣减。",
		},
		When: api.Text{
			EN: "Choose it if so many sales update one row that `atomic` is too slow. To know the remaining stock, you must add up 16 rows.",
			ZH: "太多请求改同一行、`atomic` 不够快时选它。要知道剩余库存，得把 16 行加起来。",
		},
		Protects: []api.Hazard{api.Race, api.ReplicaRace, api.Crash, api.Pause},
		Breaks:   []api.Break{},
	}
}
