package mysqllock

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"oversell/api"
	"oversell/locks"
	"oversell/stock"
)

// SkipLocked stores each piece of the stock as a row of db_units. Each sale locks rows that no
// other transaction has locked, so sales do not wait for each other. A sale that finds too few rows
// converts a part of the count in db_stock into rows. The stock is the count plus the number of
// rows.
func SkipLocked(db *gorm.DB) locks.Strategy { return &skipLocked{db} }

type skipLocked struct{ db *gorm.DB }

// restockSize is the number of rows that are inserted at once. With fewer than lowUnits rows,
// concurrent sales would compete for the same rows, so a sale inserts more.
const (
	restockSize = 1000
	lowUnits    = 200
)

type unit struct{ Product, ID int64 }

// TableName tells gorm the name that the table has in the migration.
func (unit) TableName() string { return "db_units" }

// errShort says that too few unlocked pieces were found. Locked pieces may still become free.
var errShort = fmt.Errorf("%w: other sales have locked the remaining pieces", stock.ErrConflict)

func (s *skipLocked) Deduct(ctx context.Context, o stock.Order) (r stock.Receipt, err error) {
	r.Remaining = stock.Uncounted
	locks.Trace(ctx, api.Asked, api.Key(o.Product), o.Owner, 0)
	pauses := newBackoff(o.Wait)
	err = pauses.retry(ctx, o, &r, func(time.Duration) error {
		for {
			// Begin at a random piece: other sales have locked or just sold the first pieces.
			err := s.sell(ctx, o, &r, pauses.left(), rand.Int64(), clause.LockingOptionsSkipLocked) //nolint:gosec // no secret
			if errors.Is(err, errShort) {
				err = s.recount(ctx, o, &r, pauses.left())
			}
			if !errors.Is(err, errShort) { // else search again, because the rows have changed
				return err
			}
		}
	})
	return r, err
}

func (s *skipLocked) sell(ctx context.Context, o stock.Order, r *stock.Receipt, wait time.Duration, from int64, option string) error {
	return locks.InTransaction(ctx, s.db, o, r, wait, func(tx *gorm.DB) error {
		key, asked := api.Key(o.Product), time.Now()
		pieces, err := lockPieces(ctx, tx, o, wait, from, option)
		granted := time.Now()
		r.Waited += granted.Sub(asked)
		if err != nil {
			return err
		}
		defer func() { r.Held = time.Since(granted) }()
		locks.Trace(ctx, api.Read, key, o.Owner, 0)
		if err := locks.Work(ctx, o.Work); err != nil {
			return err
		}
		locks.Trace(ctx, api.Writing, key, o.Owner, 0)
		if err := tx.Exec("DELETE FROM db_units WHERE product = ? AND id IN ?", o.Product, pieces).Error; err != nil {
			return err
		}
		locks.Trace(ctx, api.Written, key, o.Owner, 0)
		return nil
	}, &sql.TxOptions{Isolation: sql.LevelReadCommitted}) // REPEATABLE READ would lock gaps as well
}

// lockPieces locks as many pieces as ordered, or returns errShort. It searches by primary key, to
// lock no other rows, and in the order of the ids, so that no two sales deadlock.
func lockPieces(ctx context.Context, tx *gorm.DB, o stock.Order, wait time.Duration, from int64, option string) (ids []int64, err error) {
	if option == "" && wait <= 0 {
		option = clause.LockingOptionsNoWait
	}
	err = withTimeout(ctx, api.Key(o.Product), max(wait, time.Second), func(ctx context.Context) error {
		return tx.WithContext(ctx).Model(&unit{}).Clauses(clause.Locking{Strength: clause.LockingStrengthUpdate, Options: option}).
			Where("product = ? AND id >= ?", o.Product, from).Order("id").Limit(o.Qty).Pluck("id", &ids).Error
	})
	if err == nil && len(ids) < o.Qty {
		err = errShort
	}
	return ids, err
}

// recount runs after errShort. It returns ErrSoldOut if too few pieces are left. Otherwise it adds
// rows, or sells after a second search, which begins at the first piece. DANGER: SKIP LOCKED skips
// pieces that another sale has locked, and that sale may roll back. Only a plain read shows that
// too few pieces are left, because it also returns locked rows. If other sales have locked the
// pieces, recount waits for them.
func (s *skipLocked) recount(ctx context.Context, o stock.Order, r *stock.Receipt, wait time.Duration) error {
	inStock, inUnits, err := s.count(ctx, o.Product)
	switch {
	case err != nil:
		return err
	case inStock+inUnits < o.Qty:
		return stock.ErrSoldOut
	case inStock > 0 && inUnits < lowUnits:
		return s.restock(ctx, o.Product, inStock)
	}
	err = s.sell(ctx, o, r, wait, 0, clause.LockingOptionsSkipLocked)
	switch {
	case !errors.Is(err, errShort):
		return err
	case inStock > 0:
		return s.restock(ctx, o.Product, inStock)
	}
	return s.sell(ctx, o, r, wait, 0, "")
}

// restock converts up to restockSize pieces of db_stock into rows, unless the count has changed
// since the caller read it. restock returns errShort, so that the sale searches again.
func (s *skipLocked) restock(ctx context.Context, product int64, seen int) error {
	n := min(restockSize, seen)
	err := s.db.WithContext(ctx).Transaction(func(tx *gorm.DB) error {
		taken := tx.Exec("UPDATE db_stock SET count = count - ? WHERE id = ? AND count = ?", n, product, seen)
		if taken.Error != nil || taken.RowsAffected == 0 {
			return taken.Error
		}
		pieces := make([]unit, n)
		for i := range pieces {
			pieces[i] = unit{product, rand.Int64()} //nolint:gosec // no secret
		}
		return tx.Create(&pieces).Error
	})
	if err != nil { // no piece was sold, even if rows were inserted
		return stock.NothingWritten(ctx, err)
	}
	return errShort
}

// count reads both tables in one statement, so each piece is counted once.
func (s *skipLocked) count(ctx context.Context, product int64) (inStock, inUnits int, err error) {
	row := s.db.WithContext(ctx).Raw(
		"SELECT count, (SELECT COUNT(*) FROM db_units WHERE product = s.id) FROM db_stock s WHERE id = ?", product).Row()
	err = row.Scan(&inStock, &inUnits)
	return inStock, inUnits, stock.NothingWritten(ctx, stock.Found(product, err))
}

func (s *skipLocked) Count(ctx context.Context, product int64) (int, error) {
	inStock, inUnits, err := s.count(ctx, product)
	return inStock + inUnits, err
}

func (s *skipLocked) Holds(ctx context.Context, product int64) (bool, error) {
	_, inUnits, err := s.count(ctx, product)
	return inUnits > 0, err
}

func (*skipLocked) Restock(tx *gorm.DB, product int64) error {
	return tx.Exec("DELETE FROM db_units WHERE product = ?", product).Error
}

func (*skipLocked) Card() api.Card {
	return api.Card{
		ID: "skip-locked", Family: "mysql", Source: "beyond", Scope: api.ScopeShared, Safe: true,
		Backends: []string{"mysql"}, CriticalStep: api.Read,
		Title: api.Text{EN: "A row for each piece, SKIP LOCKED", ZH: "一件一行 SKIP LOCKED"},
		Summary: api.Text{
			EN: "Each piece is a row. A sale locks one that no other sale has locked, and deletes it. If all remaining rows are locked, it waits: another sale may roll back, so locked does not mean sold out.",
			ZH: "每件商品一行；跳过其他请求锁住的行，锁住一行并删除。剩下的行都被锁住时要等待：其他请求可能回滚，所以被锁住不等于售罄。",
		},
		When: api.Text{
			EN: "Choose it if each item is a row of its own, such as a seat or a coupon code. If all items are equal, `atomic` is faster.",
			ZH: "每件东西自成一行（例如座位、券码）时选它。东西都一样的话，`atomic` 更快。",
		},
		Protects: []api.Hazard{api.Race, api.ReplicaRace, api.Crash, api.Pause},
		Breaks:   []api.Break{},
	}
}
