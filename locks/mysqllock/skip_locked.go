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

// SkipLocked sells pieces that are rows of their own: each sale locks pieces that no other
// transaction has locked, so sales don't wait for each other.
//
// The count in db_stock is the store-room, and db_units the counter. Sales take from the counter,
// and a sale that finds too little there brings more from the store-room. The stock is the sum of
// both, so nothing need be prepared, and a reset clears the counter.
func SkipLocked(db *gorm.DB) locks.Strategy { return &skipLocked{db} }

type skipLocked struct{ db *gorm.DB }

// restockSize is the number of pieces that are brought to the counter at once. With fewer than
// lowCounter, concurrent sales would compete for the same pieces.
const (
	restockSize = 1000
	lowCounter  = 200
)

// unit is one piece on the counter.
type unit struct{ Product, ID int64 }

// TableName is the migration's.
func (unit) TableName() string { return "db_units" }

// errShort says that too few unlocked pieces were found. That does not mean sold out.
var errShort = fmt.Errorf("%w: rivals have the rest", stock.ErrConflict)

func (s *skipLocked) Deduct(ctx context.Context, o stock.Order) (r stock.Receipt, err error) {
	key, patience := api.Key(o.Product), newBackoff(o.Wait)
	r.Remaining = stock.Uncounted
	locks.Trace(ctx, api.Asked, key, o.Owner, 0)
	for {
		// From a random piece on: a search from the first piece would skip all that other
		// sales have locked or just sold.
		err = s.sell(ctx, o, &r, patience.left(), rand.Int64(), clause.LockingOptionsSkipLocked) //nolint:gosec // no secret
		if errors.Is(err, errShort) {
			err = s.recount(ctx, o, &r, patience.left())
		}
		if errors.Is(err, errShort) { // more was brought, or another sale took the pieces
			continue
		}
		if !stock.IsContention(err) {
			return r, err
		}
		r.Retries++
		if !patience.pause(ctx) {
			return r, fmt.Errorf("%w: %w", locks.NotAcquired(ctx, key, o.Wait), err)
		}
	}
}

// sell locks pieces and deletes them, in one transaction.
func (s *skipLocked) sell(ctx context.Context, o stock.Order, r *stock.Receipt, wait time.Duration, from int64, option string) error {
	return inTransaction(ctx, s.db, o, r, wait, func(tx *gorm.DB) error {
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
	}, &sql.TxOptions{Isolation: sql.LevelReadCommitted}) // REPEATABLE READ locks the gaps as well
}

// lockPieces locks the ordered number of pieces. errShort: there are too few. It searches by the
// primary key, so that it locks no others, and in order, so that no two sales deadlock.
func lockPieces(ctx context.Context, tx *gorm.DB, o stock.Order, wait time.Duration, from int64, option string) (ids []int64, err error) {
	if option == "" && wait <= 0 {
		option = clause.LockingOptionsNoWait
	}
	waiting, cancel := context.WithTimeout(ctx, max(wait, time.Second))
	defer cancel()
	err = tx.WithContext(waiting).Model(&unit{}).Clauses(clause.Locking{Strength: clause.LockingStrengthUpdate, Options: option}).
		Where("product = ? AND id >= ?", o.Product, from).Order("id").Limit(o.Qty).Pluck("id", &ids).Error
	switch {
	case err != nil && waiting.Err() != nil:
		return nil, locks.NotAcquired(ctx, api.Key(o.Product), wait)
	case err == nil && len(ids) < o.Qty:
		return nil, errShort
	}
	return ids, err
}

// recount finds out why the counter had too few pieces.
//
// DANGER: SKIP LOCKED skips pieces that another sale has locked, and that sale may roll back. So
// only a plain read can tell that all is sold: it finds a piece until its sale has committed.
// Pieces that are locked are waited for.
func (s *skipLocked) recount(ctx context.Context, o stock.Order, r *stock.Receipt, wait time.Duration) error {
	stored, shown, err := s.count(ctx, o.Product)
	switch {
	case err != nil:
		return err
	case stored+shown < o.Qty:
		return stock.ErrSoldOut
	case stored > 0 && shown < lowCounter:
		return s.bring(ctx, o.Product, stored)
	}
	err = s.sell(ctx, o, r, wait, 0, clause.LockingOptionsSkipLocked)
	switch {
	case !errors.Is(err, errShort):
		return err
	case stored > 0:
		return s.bring(ctx, o.Product, stored)
	}
	return s.sell(ctx, o, r, wait, 0, "")
}

// bring moves up to restockSize pieces from the store-room to the counter, unless another sale
// has just done so and the store-room no longer has the count that was read. It returns errShort:
// search again.
func (s *skipLocked) bring(ctx context.Context, product int64, seen int) error {
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
	if err != nil { // whatever was brought, nothing was sold
		return stock.NothingWritten(ctx, err)
	}
	return errShort
}

// count reads both in one statement: a piece that is being moved is in one of them, not in both.
func (s *skipLocked) count(ctx context.Context, product int64) (stored, shown int, err error) {
	row := s.db.WithContext(ctx).Raw(
		"SELECT count, (SELECT COUNT(*) FROM db_units WHERE product = s.id) FROM db_stock s WHERE id = ?", product).Row()
	err = row.Scan(&stored, &shown)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, 0, fmt.Errorf("product %d: %w", product, stock.ErrUnknownProduct)
	}
	return stored, shown, stock.NothingWritten(ctx, err)
}

// Count returns the pieces for sale, on the counter and in the store-room.
func (s *skipLocked) Count(ctx context.Context, product int64) (int, error) {
	stored, shown, err := s.count(ctx, product)
	return stored + shown, err
}

// Clear empties the counter.
func (s *skipLocked) Clear(ctx context.Context, key string) error {
	return clearTable(ctx, s.db, "db_units", key)
}

func (*skipLocked) Card() api.Card {
	return api.Card{
		ID: "skip-locked", Family: "mysql", Source: "beyond", Scope: api.ScopeShared, Safe: true,
		Backends: []string{"mysql"}, CriticalStep: api.Read,
		Title: api.Text{EN: "A row for each piece, SKIP LOCKED", ZH: "一件一行 SKIP LOCKED"},
		Summary: api.Text{
			EN: "Each piece is a row; a sale locks one that nobody has locked and deletes it. Where all the rest are locked it waits: a rival that rolls back gives its piece back, so locked is not sold out.",
			ZH: "每件商品一行；跳过别人锁住的行，锁一件、删一件。剩下的都被锁住时要等待：对手可能回滚，把货退回来，锁住不等于售罄。",
		},
		Protects: []api.Hazard{api.Race, api.ReplicaRace, api.Crash, api.Pause},
		Breaks:   []api.Break{},
	}
}
