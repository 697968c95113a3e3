package stock

import (
	"context"
	"errors"
	"fmt"

	"gorm.io/gorm"
)

// These are the reasons to reject a recharge. No credit was written.
var (
	ErrUnknownOrder = errors.New("this order does not exist")
	// ErrWrongAmount means that the amount in the request differs from the order's amount.
	ErrWrongAmount = errors.New("the amount differs from the amount of the order")
	// ErrKeyReused means that another request used this idempotency key before.
	ErrKeyReused = errors.New("another request used this idempotency key before")
	// ErrCredited means that an earlier request credited the order. The request changed nothing.
	ErrCredited = errors.New("credited before")
)

// Recharge is one row of db_recharges: an order to credit an account with an amount in cents.
type Recharge struct {
	ID      int64 `json:"id"`
	Account int64 `json:"account"`
	Amount  int64 `json:"amount"`
	Paid    bool  `json:"paid"`
	Version int64 `json:"version"`
	// Balance is the balance of the account.
	Balance int64 `json:"balance"`
}

// Recharges needs a lock or a Proof: between Due and Credit, another request may credit the order.
type Recharges struct{ db *gorm.DB }

// NewRecharges returns the recharges in db, which Open has opened.
func NewRecharges(db *gorm.DB) *Recharges { return &Recharges{db} }

// Read returns the order with its account's balance, or ErrUnknownOrder.
func (r *Recharges) Read(ctx context.Context, id int64) (Recharge, error) {
	return first[Recharge](ctx, r.db, id, fmt.Errorf("order %d: %w", id, ErrUnknownOrder), `SELECT r.id, r.account, r.amount, r.paid, r.version, a.balance
		FROM db_recharges r JOIN db_accounts a ON a.id = r.account WHERE r.id = ?`)
}

// Due returns an order that can be credited, or ErrUnknownOrder, ErrWrongAmount or ErrCredited.
func (r *Recharges) Due(ctx context.Context, id, amount int64) (Recharge, error) {
	order, err := r.Read(ctx, id)
	switch {
	case err != nil:
		return order, err
	case order.Amount != amount:
		return order, fmt.Errorf("order %d: %w: %d", id, ErrWrongAmount, order.Amount)
	case order.Paid:
		return order, fmt.Errorf("order %d: %w", id, ErrCredited)
	}
	return order, nil
}

// Proof says which checks Credit makes in the database.
type Proof struct {
	// Version makes Credit return ErrCredited if the order has changed since Due.
	Version bool
	// Key is stored with the credit. If Key is already stored, Credit returns ErrCredited, or
	// ErrKeyReused if the stored order or amount differs. Empty means no key.
	Key string
}

var errKeyTaken = errors.New("key taken")

// Credit marks an order as paid and raises the balance, or neither. transaction calls committing.
func (r *Recharges) Credit(ctx context.Context, order Recharge, proof Proof, committing func() error) error {
	err := transaction(ctx, r.db, committing, func(tx *gorm.DB) error { return credit(tx, order, proof) })
	switch {
	case errors.Is(err, ErrCredited):
		return fmt.Errorf("order %d: %w", order.ID, ErrCredited)
	case errors.Is(err, errKeyTaken):
		again, cancel := uncancelled(ctx)
		defer cancel()
		return r.Replayed(again, proof.Key, order.ID, order.Amount)
	}
	return err
}

func credit(tx *gorm.DB, order Recharge, proof Proof) error {
	if proof.Key != "" {
		// A second request with the same key waits here until the first one commits or rolls back.
		err := tx.Exec("INSERT INTO db_idempotency_keys (name, recharge, amount) VALUES (?, ?, ?)", proof.Key, order.ID, order.Amount).Error
		if IsDuplicate(err) {
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
	// DANGER: without a proof, this statement overwrites the payment of a concurrent request.
	paid = paid.Updates(map[string]any{"paid": true, "version": gorm.Expr("version + 1")})
	if paid.Error != nil {
		return paid.Error
	}
	if paid.RowsAffected == 0 {
		return ErrCredited
	}
	return tx.Exec("UPDATE db_accounts SET balance = balance + ? WHERE id = ?", order.Amount, order.Account).Error
}

// Replayed returns nil for an unknown idempotency key. It returns ErrCredited if the key is stored
// with the same order and amount, and ErrKeyReused if either differs.
func (r *Recharges) Replayed(ctx context.Context, key string, id, amount int64) error {
	const query = "SELECT recharge, amount FROM db_idempotency_keys WHERE name = ?"
	found, err := rows[struct{ Recharge, Amount int64 }](ctx, r.db, query, key)
	switch {
	case err != nil:
		return err
	case len(found) == 0:
		return nil
	case found[0].Recharge != id || found[0].Amount != amount:
		return fmt.Errorf("order %d: %w", id, ErrKeyReused)
	}
	return fmt.Errorf("order %d: %w", id, ErrCredited)
}

// Reset sets the amount and a balance of 0, deletes idempotency keys, and creates a missing order.
func (r *Recharges) Reset(ctx context.Context, id, account, amount int64) error {
	return reset(ctx, r.db, map[string]any{"id": id, "account": account, "amount": amount},
		"REPLACE INTO db_accounts (id, balance) VALUES (@account, 0)",
		"REPLACE INTO db_recharges (id, account, amount) VALUES (@id, @account, @amount)",
		"DELETE FROM db_idempotency_keys WHERE recharge = @id")
}
