package stock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-sql-driver/mysql"
	"gorm.io/gorm"
)

// What a coupon's order can be refused with, besides ErrSoldOut. Nothing was written.
var (
	ErrUnknownCoupon = errors.New("unknown coupon")
	ErrNotOpen       = errors.New("not open yet")
	ErrOver          = errors.New("over")
	ErrAlreadyTaken  = errors.New("already taken")
)

// duplicate is MySQL's error where a unique key is violated.
const duplicate = 1062

// Coupon is one row of db_coupons.
type Coupon struct {
	ID      int64 `json:"id"`
	Initial int   `json:"initial"`
	Count   int   `json:"count"` // left
	// Begun and Ended are by MySQL's clock: one for all replicas.
	Begun bool `json:"begun"`
	Ended bool `json:"ended"`
}

// CouponOrder says which user has one of the coupons. Its id rises in the order of the
// commits, over all replicas, and says when it was made, by MySQL's clock.
type CouponOrder struct {
	ID   int64 `json:"order"`
	User int64 `json:"user"`
}

// Made is when the order was made, to the microsecond.
func (o CouponOrder) Made() time.Time { return time.UnixMicro(o.ID).UTC() }

// Coupons are given once to each user, as far as the caller sees to it: between Check and
// Place lies the gap that a guard must close.
type Coupons struct{ db *gorm.DB }

// NewCoupons keeps the coupons in db, which Open gives.
func NewCoupons(db *gorm.DB) *Coupons { return &Coupons{db} }

// Read returns the coupon, or ErrUnknownCoupon.
func (c *Coupons) Read(ctx context.Context, id int64) (Coupon, error) {
	var found []Coupon
	err := c.db.WithContext(ctx).Raw(`SELECT id, initial, count, begins_at <= UTC_TIMESTAMP(6) AS begun, ends_at <= UTC_TIMESTAMP(6) AS ended
		FROM db_coupons WHERE id = ?`, id).Scan(&found).Error
	if err == nil && len(found) == 0 {
		return Coupon{}, fmt.Errorf("coupon %d: %w", id, ErrUnknownCoupon)
	}
	if err != nil {
		return Coupon{}, NothingWritten(ctx, err)
	}
	return found[0], nil
}

// Open is nil when the coupon can be had now: else ErrUnknownCoupon, ErrNotOpen, ErrOver or
// ErrSoldOut.
func (c *Coupons) Open(ctx context.Context, id int64) error {
	coupon, err := c.Read(ctx, id)
	switch {
	case err != nil:
		return err
	case !coupon.Begun:
		return fmt.Errorf("coupon %d: %w", id, ErrNotOpen)
	case coupon.Ended:
		return fmt.Errorf("coupon %d: %w", id, ErrOver)
	case coupon.Count < 1:
		return fmt.Errorf("coupon %d: %w", id, ErrSoldOut)
	}
	return nil
}

// Check is ErrAlreadyTaken when the user has an order of this coupon.
func (c *Coupons) Check(ctx context.Context, id, user int64) error {
	var n int
	err := c.db.WithContext(ctx).Raw("SELECT COUNT(*) FROM db_coupon_orders WHERE coupon = ? AND user = ?", id, user).Scan(&n).Error
	if err == nil && n > 0 {
		return fmt.Errorf("coupon %d: %w", id, ErrAlreadyTaken)
	}
	return NothingWritten(ctx, err)
}

// Place takes one coupon and gives it to the user, or does neither. With once the unique
// key of (coupon, user) is there to refuse a second order, whatever the caller checked:
// ErrAlreadyTaken. committing is called between the last statement and the commit; its error
// undoes the order, and is returned.
func (c *Coupons) Place(ctx context.Context, id, user int64, once bool, committing func() error) (CouponOrder, error) {
	ctx, cancel := uncancelled(ctx)
	defer cancel()
	tx := c.db.WithContext(ctx).Begin()
	if tx.Error != nil {
		return CouponOrder{}, NothingWritten(ctx, tx.Error)
	}
	order, err := place(tx, id, user, once)
	if err != nil {
		tx.Rollback()
		if errors.Is(err, ErrSoldOut) || errors.Is(err, ErrAlreadyTaken) {
			return CouponOrder{}, fmt.Errorf("coupon %d: %w", id, err)
		}
		return CouponOrder{}, NothingWritten(ctx, err)
	}
	if err := committing(); err != nil {
		tx.Rollback()
		return CouponOrder{}, err
	}
	return order, Indeterminate(tx.Commit().Error)
}

func place(tx *gorm.DB, id, user int64, once bool) (CouponOrder, error) {
	// Who has this row has it until the commit: the orders of one coupon stand in line here.
	taken := tx.Exec("UPDATE db_coupons SET count = count - 1 WHERE id = ? AND count > 0", id)
	if taken.Error != nil {
		return CouponOrder{}, taken.Error
	}
	if taken.RowsAffected == 0 {
		return CouponOrder{}, ErrSoldOut
	}
	order := CouponOrder{User: user}
	var err error
	if order.ID, err = nextOrderID(tx); err != nil {
		return order, err
	}
	guard := &user
	if !once {
		guard = nil
	}
	err = tx.Exec("INSERT INTO db_coupon_orders (id, coupon, user, once) VALUES (?, ?, ?, ?)", order.ID, id, user, guard).Error
	var e *mysql.MySQLError
	if once && errors.As(err, &e) && e.Number == duplicate { // the ids never are
		return order, ErrAlreadyTaken
	}
	return order, err
}

// nextOrderID gives out microseconds since 1970, and one more than the last where that is
// not later: two orders in one microsecond, or a clock that was set back. Its row is locked
// until the commit, so that a higher id is also a later commit. It stays below 2^53, so a
// browser can count on it.
func nextOrderID(tx *gorm.DB) (id int64, err error) {
	err = tx.Exec(`UPDATE db_order_ids SET last = LAST_INSERT_ID(
		GREATEST(last + 1, CAST(UNIX_TIMESTAMP(NOW(6)) * 1000000 AS SIGNED))) WHERE id = 1`).Error
	if err == nil {
		err = tx.Raw("SELECT LAST_INSERT_ID()").Scan(&id).Error
	}
	return id, err
}

// Orders are the coupon's, in the order of their ids.
func (c *Coupons) Orders(ctx context.Context, id int64) ([]CouponOrder, error) {
	orders := []CouponOrder{}
	err := c.db.WithContext(ctx).Raw("SELECT id, user FROM db_coupon_orders WHERE coupon = ? ORDER BY id", id).Scan(&orders).Error
	return orders, NothingWritten(ctx, err)
}

// Reset begins the coupon anew, also one that was not there: so many of them, no orders,
// open from begins to ends, both counted from now.
func (c *Coupons) Reset(ctx context.Context, id int64, count int, begins, ends time.Duration) error {
	err := c.db.WithContext(ctx).Transaction(func(tx *gorm.DB) error {
		err := tx.Exec(`REPLACE INTO db_coupons (id, initial, count, begins_at, ends_at) VALUES (?, ?, ?,
			UTC_TIMESTAMP(6) + INTERVAL ? MICROSECOND, UTC_TIMESTAMP(6) + INTERVAL ? MICROSECOND)`,
			id, count, count, begins.Microseconds(), ends.Microseconds()).Error
		if err != nil {
			return err
		}
		return tx.Exec("DELETE FROM db_coupon_orders WHERE coupon = ?", id).Error
	})
	return NothingWritten(ctx, err)
}
