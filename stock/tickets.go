package stock

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-sql-driver/mysql"
	"gorm.io/gorm"
)

// What a ticket can be refused with, besides ErrSoldOut. Nothing was written.
var (
	ErrUnknownShow = errors.New("unknown show")
	// ErrTicketSold says that somebody else has sold this very number.
	ErrTicketSold = errors.New("this ticket was sold before")
)

// Show is one row of db_shows: its tickets have numbers, and are sold from the highest
// down to 1, as the windows of tutorial document 002 do.
type Show struct {
	ID      int64 `json:"id"`
	Tickets int   `json:"tickets"`
	// Next is the number that is sold next; 0 when all are.
	Next int `gorm:"column:next_number" json:"next"`
}

// TableName is this shop's own; the tutorial keeps the number in memory.
func (Show) TableName() string { return "db_shows" }

// Ticket is one that was sold, and at which window.
type Ticket struct {
	Number int    `json:"number"`
	Window string `gorm:"column:sold_by" json:"window"`
}

// Tickets keeps shows and their sales. Read and Sell are two calls, as the ledger's Read
// and Write: what keeps two windows from one number between them is the caller's business.
type Tickets struct{ db *gorm.DB }

// NewTickets keeps them in db, which Open gives.
func NewTickets(db *gorm.DB) *Tickets { return &Tickets{db} }

// Read returns the show; ErrUnknownShow, ErrCancelled or ErrUnavailable.
func (t *Tickets) Read(ctx context.Context, show int64) (Show, error) {
	var s Show
	err := t.db.WithContext(ctx).Take(&s, show).Error
	if errors.Is(err, gorm.ErrRecordNotFound) {
		return s, fmt.Errorf("show %d: %w", show, ErrUnknownShow)
	}
	return s, NothingWritten(ctx, err)
}

// Sell hands the ticket out, and moves the show on to the number below it: both or neither.
// committing is called between the last statement and the commit; its error undoes the sale,
// and is returned.
func (t *Tickets) Sell(ctx context.Context, show int64, sold Ticket, committing func() error) error {
	return t.transaction(ctx, committing, func(tx *gorm.DB) error {
		if err := tx.Exec("UPDATE db_shows SET next_number = ? WHERE id = ?", sold.Number-1, show).Error; err != nil {
			return err
		}
		return tx.Exec("INSERT INTO db_tickets (show_id, number, sold_by) VALUES (?, ?, ?)", show, sold.Number, sold.Window).Error
	})
}

// SellOnce is Sell where the table itself lets a number in once only: ErrTicketSold for all who
// come later, whatever became of their locks.
func (t *Tickets) SellOnce(ctx context.Context, show int64, sold Ticket, committing func() error) error {
	err := t.transaction(ctx, committing, func(tx *gorm.DB) error {
		err := tx.Exec("INSERT INTO db_tickets (show_id, number, sold_by, once) VALUES (?, ?, ?, ?)", show, sold.Number, sold.Window, sold.Number).Error
		if err != nil {
			return err
		}
		// Not up again: whoever was slower has already sold the numbers below.
		return tx.Exec("UPDATE db_shows SET next_number = LEAST(next_number, ?) WHERE id = ?", sold.Number-1, show).Error
	})
	var answer *mysql.MySQLError
	if errors.As(err, &answer) && answer.Number == duplicate {
		return fmt.Errorf("ticket %d: %w", sold.Number, ErrTicketSold)
	}
	return err
}

// Take moves the show on by one, whatever its number is. ErrSoldOut: there was none left.
// It doesn't say which number it took, though MySQL could (LAST_INSERT_ID of an expression):
// whoever asks afterwards reads what others have taken meanwhile.
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

// Hand notes that the ticket was handed out. The show was moved on by Take.
func (t *Tickets) Hand(ctx context.Context, show int64, sold Ticket) error {
	ctx, cancel := uncancelled(ctx)
	defer cancel()
	return Indeterminate(t.db.WithContext(ctx).Exec("INSERT INTO db_tickets (show_id, number, sold_by) VALUES (?, ?, ?)", show, sold.Number, sold.Window).Error)
}

// Sold lists what was sold of the show, in the order of the sales.
func (t *Tickets) Sold(ctx context.Context, show int64) ([]Ticket, error) {
	sold := []Ticket{}
	err := t.db.WithContext(ctx).Raw("SELECT number, sold_by FROM db_tickets WHERE show_id = ? ORDER BY id", show).Scan(&sold).Error
	return sold, NothingWritten(ctx, err)
}

// Reset prints the tickets anew, also of a show that was not there, and forgets all sales.
func (t *Tickets) Reset(ctx context.Context, show int64, tickets int) error {
	err := t.db.WithContext(ctx).Transaction(func(tx *gorm.DB) error {
		if err := tx.Exec("DELETE FROM db_tickets WHERE show_id = ?", show).Error; err != nil {
			return err
		}
		return tx.Exec("INSERT INTO db_shows (id, tickets, next_number) VALUES (?, ?, ?) ON DUPLICATE KEY UPDATE tickets = VALUES(tickets), next_number = VALUES(next_number)",
			show, tickets, tickets).Error
	})
	return NothingWritten(ctx, err)
}

// transaction ends what it begins: see uncancelled. An error before COMMIT was sent means
// that nothing was written; a COMMIT without an answer leaves the outcome unknown.
func (t *Tickets) transaction(ctx context.Context, committing func() error, write func(*gorm.DB) error) error {
	if ctx.Err() != nil {
		return NothingWritten(ctx, ctx.Err())
	}
	free, cancel := uncancelled(ctx)
	defer cancel()
	sent, undone := false, error(nil)
	err := t.db.WithContext(free).Transaction(func(tx *gorm.DB) error {
		if err := write(tx); err != nil {
			return err
		}
		undone = committing()
		sent = undone == nil
		return undone
	})
	switch {
	case undone != nil:
		return undone
	case sent:
		return Indeterminate(err)
	}
	return NothingWritten(free, err)
}
