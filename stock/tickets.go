package stock

import (
	"context"
	"errors"
	"fmt"

	"gorm.io/gorm"
)

// These are reasons why a ticket is not sold, besides ErrSoldOut. No sale was written.
var (
	ErrUnknownShow = errors.New("this show does not exist: create it first")
	// ErrTicketSold means that another ticket window (a seller) has sold this ticket number.
	ErrTicketSold = errors.New("another window has sold this ticket")
)

// Show is an event. Its tickets are sold from the highest number down to 1 (tutorial document 002).
type Show struct {
	ID      int64 `json:"id"`
	Tickets int   `json:"tickets"`
	// Next is the number of the ticket that is sold next. 0 means sold out.
	Next int `gorm:"column:next_number" json:"next"`
}

// Ticket is a sold ticket. Window is the name of the ticket window (the seller) that sold it.
type Ticket struct {
	Number int    `json:"number"`
	Window string `gorm:"column:sold_by" json:"window"`
}

// Tickets needs a lock or a unique key: between Read and Sell, another window may sell the number.
type Tickets struct{ db *gorm.DB }

// NewTickets returns the shows in db, which Open has opened.
func NewTickets(db *gorm.DB) *Tickets { return &Tickets{db} }

// Read returns the show, or ErrUnknownShow, ErrCancelled or ErrUnavailable.
func (t *Tickets) Read(ctx context.Context, show int64) (Show, error) {
	return first[Show](ctx, t.db, show, fmt.Errorf("show %d: %w", show, ErrUnknownShow), "SELECT id, tickets, next_number FROM db_shows WHERE id = ?")
}

// Sell records a sale and lowers the show's next number, or neither. transaction calls committing.
func (t *Tickets) Sell(ctx context.Context, show int64, sold Ticket, committing func() error) error {
	return transaction(ctx, t.db, committing, func(tx *gorm.DB) error {
		if err := tx.Exec("UPDATE db_shows SET next_number = ? WHERE id = ?", sold.Number-1, show).Error; err != nil {
			return err
		}
		return insertTicket(tx, show, sold)
	})
}

func insertTicket(db *gorm.DB, show int64, sold Ticket) error {
	return db.Exec("INSERT INTO db_tickets (show_id, number, sold_by) VALUES (?, ?, ?)", show, sold.Number, sold.Window).Error
}

// SellOnce is Sell with a unique key: a sold number gives ErrTicketSold. It never raises Show.Next.
func (t *Tickets) SellOnce(ctx context.Context, show int64, sold Ticket, committing func() error) error {
	err := transaction(ctx, t.db, committing, func(tx *gorm.DB) error {
		err := tx.Exec("INSERT INTO db_tickets (show_id, number, sold_by, once) VALUES (?, ?, ?, ?)", show, sold.Number, sold.Window, sold.Number).Error
		if err != nil {
			return err
		}
		// LEAST keeps the lower number, because another window may have sold lower numbers already.
		return tx.Exec("UPDATE db_shows SET next_number = LEAST(next_number, ?) WHERE id = ?", sold.Number-1, show).Error
	})
	if IsDuplicate(err) {
		return fmt.Errorf("ticket %d: %w", sold.Number, ErrTicketSold)
	}
	return err
}

// Take lowers the next number, or returns ErrSoldOut. On purpose, it does not return the number.
// Before the caller reads the show, other windows may lower the next number again.
func (t *Tickets) Take(ctx context.Context, show int64) error {
	free, cancel := uncancelled(ctx)
	defer cancel()
	tx := t.db.WithContext(free).Exec("UPDATE db_shows SET next_number = next_number - 1 WHERE id = ? AND next_number > 0", show)
	if tx.Error != nil || tx.RowsAffected == 1 {
		return Indeterminate(tx.Error)
	}
	if _, err := t.Read(ctx, show); err != nil {
		return err
	}
	return ErrSoldOut
}

// Hand records the sale of a ticket. The caller has called Take before, which counts the show's next number down.
func (t *Tickets) Hand(ctx context.Context, show int64, sold Ticket) error {
	ctx, cancel := uncancelled(ctx)
	defer cancel()
	return Indeterminate(insertTicket(t.db.WithContext(ctx), show, sold))
}

// Sold returns the sold tickets of the show, in the order of their sales.
func (t *Tickets) Sold(ctx context.Context, show int64) ([]Ticket, error) {
	return rows[Ticket](ctx, t.db, "SELECT number, sold_by FROM db_tickets WHERE show_id = ? ORDER BY id", show)
}

// Reset sets the number of tickets, deletes all sales, and creates a missing show.
func (t *Tickets) Reset(ctx context.Context, show int64, tickets int) error {
	return reset(ctx, t.db, map[string]any{"show": show, "tickets": tickets},
		"DELETE FROM db_tickets WHERE show_id = @show",
		`INSERT INTO db_shows (id, tickets, next_number) VALUES (@show, @tickets, @tickets)
			ON DUPLICATE KEY UPDATE tickets = @tickets, next_number = @tickets`)
}
