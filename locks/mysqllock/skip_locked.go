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

	"oversell/locks"
	"oversell/stock"
)

// SkipLocked sells pieces that are rows of their own: each sale locks some that nobody
// else has locked, so sales don't wait for each other.
//
// The count in db_stock is the store-room, and db_units the counter: sales take from the
// counter, and whoever finds too little there brings some more. What is for sale is the
// sum of both, so nothing need be made ready, and a reset clears the counter.
func SkipLocked(db *gorm.DB) locks.Strategy { return &skipLocked{db} }

type skipLocked struct{ db *gorm.DB }

// armful is how many pieces are brought to the counter at once, and few what a crowd would
// fight for.
const (
	armful = 1000
	few    = 200
)

// unit is one piece on the counter.
type unit struct{ Product, ID int64 }

// TableName is the migration's.
func (unit) TableName() string { return "db_units" }

// errShort says that too few pieces were found unlocked, which does not mean sold out.
var errShort = fmt.Errorf("%w: rivals have the rest", stock.ErrConflict)

func (s *skipLocked) Deduct(ctx context.Context, o stock.Order) (r stock.Receipt, err error) {
	key, patience := locks.Key(o.Product), newBackoff(o.Wait)
	r.Remaining = stock.Uncounted
	locks.Trace(ctx, locks.Asked, key, o.Owner, 0)
	for {
		// From somewhere on: were all to begin with the first piece, each would have to
		// pass over all that the others have locked, or sold just now.
		err = s.sell(ctx, o, &r, patience.left(), rand.Int64(), clause.LockingOptionsSkipLocked) //nolint:gosec // no secret
		if errors.Is(err, errShort) {
			err = s.lookAgain(ctx, o, &r, patience.left())
		}
		if errors.Is(err, errShort) { // there is more by now, or a rival bought what we waited for
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

// sell is one transaction: lock pieces, and take them off the counter.
func (s *skipLocked) sell(ctx context.Context, o stock.Order, r *stock.Receipt, wait time.Duration, from int64, option string) error {
	return inTransaction(ctx, s.db, o, r, wait, func(tx *gorm.DB) error {
		key, asked := locks.Key(o.Product), time.Now()
		pieces, err := lockPieces(ctx, tx, o, wait, from, option)
		granted := time.Now()
		r.Waited += granted.Sub(asked)
		if err != nil {
			return err
		}
		defer func() { r.Held = time.Since(granted) }()
		locks.Trace(ctx, locks.Read, key, o.Owner, 0)
		if err := locks.Work(ctx, o.Work); err != nil {
			return err
		}
		locks.Trace(ctx, locks.Writing, key, o.Owner, 0)
		if err := tx.Exec("DELETE FROM db_units WHERE product = ? AND id IN ?", o.Product, pieces).Error; err != nil {
			return err
		}
		locks.Trace(ctx, locks.Written, key, o.Owner, 0)
		return nil
	}, &sql.TxOptions{Isolation: sql.LevelReadCommitted}) // REPEATABLE READ locks the gaps as well
}

// lockPieces locks as many pieces as are ordered, or it is errShort. It goes by the primary
// key, so that it locks no others; in order, so that two who wait don't wait for each other.
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
		return nil, locks.NotAcquired(ctx, locks.Key(o.Product), wait)
	case err == nil && len(ids) < o.Qty:
		return nil, errShort
	}
	return ids, err
}

// lookAgain finds out why the counter had too few.
//
// DANGER: SKIP LOCKED takes a piece that a rival has locked for one that is not there. The
// rival may roll back. So whether all is sold is a plain read's to say: to that, a piece is
// there until its sale is committed. What is there and locked is waited for.
func (s *skipLocked) lookAgain(ctx context.Context, o stock.Order, r *stock.Receipt, wait time.Duration) error {
	stored, shown, err := s.count(ctx, o.Product)
	switch {
	case err != nil:
		return err
	case stored+shown < o.Qty:
		return stock.ErrSoldOut
	case stored > 0 && shown < few:
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

// bring moves an armful from the store-room to the counter, both or nothing, unless somebody
// has just done so: then the store-room holds other than what was seen. Then look: errShort.
func (s *skipLocked) bring(ctx context.Context, product int64, seen int) error {
	n := min(armful, seen)
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

// count looks at both in one statement: what is on its way is in one of them, not in both.
func (s *skipLocked) count(ctx context.Context, product int64) (stored, shown int, err error) {
	row := s.db.WithContext(ctx).Raw(
		"SELECT count, (SELECT COUNT(*) FROM db_units WHERE product = s.id) FROM db_stock s WHERE id = ?", product).Row()
	err = row.Scan(&stored, &shown)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, 0, fmt.Errorf("product %d: %w", product, stock.ErrUnknownProduct)
	}
	return stored, shown, stock.NothingWritten(ctx, err)
}

// Count is what can be sold, here and by those who sell from the row.
func (s *skipLocked) Count(ctx context.Context, product int64) (int, error) {
	stored, shown, err := s.count(ctx, product)
	return stored + shown, err
}

// Clear empties the counter.
func (s *skipLocked) Clear(ctx context.Context, key string) error {
	return clearTable(ctx, s.db, "db_units", key)
}

func (*skipLocked) Card() locks.Card {
	return locks.Card{
		ID: "skip-locked", Family: "mysql", Source: "beyond", Scope: locks.ScopeShared, Safe: true,
		Backends: []string{"mysql"}, CriticalStep: locks.Read,
		Title: locks.Text{EN: "A row for each piece, SKIP LOCKED", ZH: "一件一行 SKIP LOCKED"},
		Summary: locks.Text{
			EN: "Each piece is a row; a sale locks one that nobody has locked and deletes it. Where all the rest are locked it waits: a rival that rolls back gives its piece back, so locked is not sold out.",
			ZH: "每件商品一行；跳过别人锁住的行，锁一件、删一件。剩下的都被锁住时要等待：对手可能回滚，把货退回来，锁住不等于售罄。",
		},
		Protects: []locks.Hazard{locks.Race, locks.ReplicaRace, locks.Crash, locks.Pause},
		Breaks:   []locks.Break{},
	}
}
