package stock

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-sql-driver/mysql"
	"gorm.io/gorm"
)

// What a recharge can be refused with. Nothing was written.
var (
	ErrUnknownOrder = errors.New("unknown order")
	// ErrWrongAmount says that the order is about another amount.
	ErrWrongAmount = errors.New("not the order's amount")
	// ErrKeyReused says that the idempotency key came with another request before.
	ErrKeyReused = errors.New("idempotency key was used for another request")
	// ErrCredited says that the order was credited before: the customer has what he wants.
	ErrCredited = errors.New("credited before")
)

// Recharge is one row of db_recharges: an order to credit an account. Amounts are in cents.
type Recharge struct {
	ID      int64 `json:"id"`
	Account int64 `json:"account"`
	Amount  int64 `json:"amount"`
	Paid    bool  `json:"paid"`
	Version int64 `json:"version"`
	// Balance is the account's.
	Balance int64 `json:"balance"`
}

// TableName keeps the orders of recharges apart from those of coupons.
func (Recharge) TableName() string { return "db_recharges" }

// Recharges are credited once, as far as the caller sees to it: between Due and Credit lies
// the gap that a guard must close.
type Recharges struct{ db *gorm.DB }

// NewRecharges keeps orders and accounts in db, which Open gives.
func NewRecharges(db *gorm.DB) *Recharges { return &Recharges{db} }

// Read returns the order with its account's balance, or ErrUnknownOrder.
func (r *Recharges) Read(ctx context.Context, id int64) (Recharge, error) {
	var found []Recharge
	err := r.db.WithContext(ctx).Raw(`SELECT r.id, r.account, r.amount, r.paid, r.version, a.balance
		FROM db_recharges r JOIN db_accounts a ON a.id = r.account WHERE r.id = ?`, id).Scan(&found).Error
	if err == nil && len(found) == 0 {
		return Recharge{}, fmt.Errorf("order %d: %w", id, ErrUnknownOrder)
	}
	if err != nil {
		return Recharge{}, NothingWritten(ctx, err)
	}
	return found[0], nil
}

// Due returns the order if it is still to be credited with that amount: else ErrUnknownOrder,
// ErrWrongAmount or ErrCredited.
func (r *Recharges) Due(ctx context.Context, id, amount int64) (Recharge, error) {
	order, err := r.Read(ctx, id)
	switch {
	case err != nil:
		return order, err
	case order.Amount != amount:
		return order, fmt.Errorf("order %d: %w, which is %d", id, ErrWrongAmount, order.Amount)
	case order.Paid:
		return order, fmt.Errorf("order %d: %w", id, ErrCredited)
	}
	return order, nil
}

// Proof is what a Credit asks of the database besides.
type Proof struct {
	// Version wants the order unchanged since Due: else ErrCredited.
	Version bool
	// Key is written with the credit, and only once: else ErrCredited, or ErrKeyReused when
	// it came with another order or amount. Empty: none.
	Key string
}

// Credit marks the order as paid and raises its account's balance, or does neither.
// committing is called between the last statement and the commit; its error undoes the
// credit, and is returned.
func (r *Recharges) Credit(ctx context.Context, order Recharge, proof Proof, committing func() error) error {
	ctx, cancel := uncancelled(ctx)
	defer cancel()
	tx := r.db.WithContext(ctx).Begin()
	if tx.Error != nil {
		return NothingWritten(ctx, tx.Error)
	}
	err := credit(tx, order, proof)
	if err != nil {
		tx.Rollback()
	}
	switch {
	case errors.Is(err, ErrCredited):
		return fmt.Errorf("order %d: %w", order.ID, err)
	case errors.Is(err, errKeyTaken):
		return r.Replayed(ctx, proof.Key, order.ID, order.Amount)
	case err != nil:
		return NothingWritten(ctx, err)
	}
	if err := committing(); err != nil {
		tx.Rollback()
		return err
	}
	return Indeterminate(tx.Commit().Error)
}

// errKeyTaken says that somebody has committed the key meanwhile.
var errKeyTaken = errors.New("key taken")

func credit(tx *gorm.DB, order Recharge, proof Proof) error {
	if proof.Key != "" {
		// A second request with the key waits here until the first has committed, or not.
		err := tx.Exec("INSERT INTO db_idempotency_keys (name, recharge, amount) VALUES (?, ?, ?)", proof.Key, order.ID, order.Amount).Error
		var e *mysql.MySQLError
		if errors.As(err, &e) && e.Number == duplicate {
			return errKeyTaken
		}
		if err != nil {
			return err
		}
	}
	paid := tx.Table("db_recharges").Where("id = ?", order.ID)
	if proof.Version {
		paid = paid.Where("version = ?", order.Version)
	}
	// Without a proof nothing is asked again: whoever came by here before is overwritten.
	paid = paid.Updates(map[string]any{"paid": true, "version": gorm.Expr("version + 1")})
	if paid.Error != nil {
		return paid.Error
	}
	if paid.RowsAffected == 0 {
		return ErrCredited
	}
	return tx.Exec("UPDATE db_accounts SET balance = balance + ? WHERE id = ?", order.Amount, order.Account).Error
}

// Replayed is nil for a key that never came, ErrCredited where it came with the same order
// and amount, and ErrKeyReused where it came with others.
func (r *Recharges) Replayed(ctx context.Context, key string, id, amount int64) error {
	var found []struct{ Recharge, Amount int64 }
	err := r.db.WithContext(ctx).Raw("SELECT recharge, amount FROM db_idempotency_keys WHERE name = ?", key).Scan(&found).Error
	switch {
	case err != nil:
		return NothingWritten(ctx, err)
	case len(found) == 0:
		return nil
	case found[0].Recharge != id || found[0].Amount != amount:
		return fmt.Errorf("order %d: %w", id, ErrKeyReused)
	}
	return fmt.Errorf("order %d: %w", id, ErrCredited)
}

// Reset begins the order anew, also one that was not there: to be credited with the amount,
// to an account with nothing in it; its idempotency keys are forgotten.
func (r *Recharges) Reset(ctx context.Context, id, account, amount int64) error {
	err := r.db.WithContext(ctx).Transaction(func(tx *gorm.DB) error {
		for _, s := range []struct {
			sql  string
			args []any
		}{
			{"REPLACE INTO db_accounts (id, balance) VALUES (?, 0)", []any{account}},
			{"REPLACE INTO db_recharges (id, account, amount) VALUES (?, ?, ?)", []any{id, account, amount}},
			{"DELETE FROM db_idempotency_keys WHERE recharge = ?", []any{id}},
		} {
			if err := tx.Exec(s.sql, s.args...).Error; err != nil {
				return err
			}
		}
		return nil
	})
	return NothingWritten(ctx, err)
}
