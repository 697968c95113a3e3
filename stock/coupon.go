package stock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"gorm.io/gorm"
)

// These are reasons to reject an order of a coupon, besides ErrSoldOut. No order was written.
var (
	ErrUnknownCoupon = errors.New("this coupon does not exist")
	ErrNotOpen       = errors.New("the sale of this coupon has not begun")
	ErrOver          = errors.New("the sale of this coupon has ended")
	ErrAlreadyTaken  = errors.New("this user has this coupon already")
)

// Coupon is one row of db_coupons.
type Coupon struct {
	ID      int64 `json:"id"`
	Initial int   `json:"initial"`
	Count   int   `json:"count"` // the coupons that are left
	// Begun and Ended are computed with MySQL's clock, which all replicas share.
	Begun bool `json:"begun"`
	Ended bool `json:"ended"`
}

// CouponOrder has its time on MySQL's clock as id. A later commit on any replica has a higher id.
type CouponOrder struct {
	ID   int64 `json:"order"`
	User int64 `json:"user"`
}

// Made returns the time of the order. Its precision is one microsecond.
func (o CouponOrder) Made() time.Time { return time.UnixMicro(o.ID).UTC() }

// Coupons needs a lock or a unique key: between Check and Place, the user may place another order.
type Coupons struct{ db *gorm.DB }

// NewCoupons returns the coupons in db, which Open has opened.
func NewCoupons(db *gorm.DB) *Coupons { return &Coupons{db} }

// Read returns the coupon. It returns ErrUnknownCoupon if the coupon does not exist.
func (c *Coupons) Read(ctx context.Context, id int64) (Coupon, error) {
	return first[Coupon](ctx, c.db, id, fmt.Errorf("coupon %d: %w", id, ErrUnknownCoupon), `SELECT id, initial, count,
		begins_at <= UTC_TIMESTAMP(6) AS begun, ends_at <= UTC_TIMESTAMP(6) AS ended FROM db_coupons WHERE id = ?`)
}

// Open returns nil if the coupon is on sale now and not sold out, and otherwise the reason.
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

// Check returns ErrAlreadyTaken if the user has an order of this coupon.
func (c *Coupons) Check(ctx context.Context, id, user int64) error {
	const query = "SELECT id, user FROM db_coupon_orders WHERE coupon = ? AND user = ?"
	orders, err := rows[CouponOrder](ctx, c.db, query, id, user)
	if err == nil && len(orders) > 0 {
		return fmt.Errorf("coupon %d: %w", id, ErrAlreadyTaken)
	}
	return err
}

// Place takes one coupon and writes the user's order, or changes nothing. If once is true, a unique
// key rejects a user's second order with ErrAlreadyTaken. transaction calls committing.
func (c *Coupons) Place(ctx context.Context, id, user int64, once bool, committing func() error) (CouponOrder, error) {
	order := CouponOrder{User: user}
	err := transaction(ctx, c.db, committing, func(tx *gorm.DB) (err error) {
		// The row stays locked until the commit, so orders of one coupon are placed one by one.
		taken := tx.Exec("UPDATE db_coupons SET count = count - 1 WHERE id = ? AND count > 0", id)
		if taken.Error != nil {
			return taken.Error
		}
		if taken.RowsAffected == 0 {
			return ErrSoldOut
		}
		if order.ID, err = nextOrderID(tx); err != nil {
			return err
		}
		unique := &user
		if !once {
			unique = nil // a unique key accepts any number of NULLs
		}
		return tx.Exec("INSERT INTO db_coupon_orders (id, coupon, user, once) VALUES (?, ?, ?, ?)", order.ID, id, user, unique).Error
	})
	switch {
	case errors.Is(err, ErrSoldOut):
		err = fmt.Errorf("coupon %d: %w", id, ErrSoldOut)
	case IsDuplicate(err): // the unique key of user and coupon, because order ids are unique
		err = fmt.Errorf("coupon %d: %w", id, ErrAlreadyTaken)
	}
	return order, err
}

// nextOrderID returns the microseconds since 1970, or the last id plus one if that is higher. The
// row with the last id stays locked until the commit, so a higher id means a later commit. Ids stay
// below 2^53, because JavaScript cannot represent every higher integer.
func nextOrderID(tx *gorm.DB) (id int64, err error) {
	err = tx.Exec(`UPDATE db_order_ids SET last = LAST_INSERT_ID(
		GREATEST(last + 1, CAST(UNIX_TIMESTAMP(NOW(6)) * 1000000 AS SIGNED))) WHERE id = 1`).Error
	if err == nil {
		err = tx.Raw("SELECT LAST_INSERT_ID()").Scan(&id).Error
	}
	return id, err
}

// Orders returns the orders of a coupon, sorted by id.
func (c *Coupons) Orders(ctx context.Context, id int64) ([]CouponOrder, error) {
	return rows[CouponOrder](ctx, c.db, "SELECT id, user FROM db_coupon_orders WHERE coupon = ? ORDER BY id", id)
}

// Reset sets or creates a coupon and deletes its orders. begins and ends are counted from now.
func (c *Coupons) Reset(ctx context.Context, id int64, count int, begins, ends time.Duration) error {
	values := map[string]any{"id": id, "count": count, "begins": begins.Microseconds(), "ends": ends.Microseconds()}
	return reset(ctx, c.db, values,
		`REPLACE INTO db_coupons (id, initial, count, begins_at, ends_at) VALUES (@id, @count, @count,
			UTC_TIMESTAMP(6) + INTERVAL @begins MICROSECOND, UTC_TIMESTAMP(6) + INTERVAL @ends MICROSECOND)`,
		"DELETE FROM db_coupon_orders WHERE coupon = @id")
}
