package stock

import (
	"context"
	"database/sql"
	"fmt"

	"gorm.io/gorm"
	"gorm.io/plugin/dbresolver"
)

// Ledger reads and writes the stock in two statements. Without a lock, updates can be lost.
type Ledger struct{ db *gorm.DB }

// NewLedger returns the stock in db, which Open has opened.
func NewLedger(db *gorm.DB) *Ledger { return &Ledger{db: db} }

// Read returns the product's row, or ErrUnknownProduct, ErrCancelled or ErrUnavailable.
func (l *Ledger) Read(ctx context.Context, product int64) (Item, error) {
	var item Item
	err := l.db.WithContext(ctx).Take(&item, product).Error
	return item, NothingWritten(ctx, Found(product, err))
}

// ReadPrimary reads the item on the primary, even if ReadAt has set a follower for reads.
func (l *Ledger) ReadPrimary(ctx context.Context, product int64) (Item, error) {
	return NewLedger(l.db.Clauses(dbresolver.Write)).Read(ctx, product)
}

// Claim registers a fence in the row, then reads the item on the primary. If the row already has
// this fence or a higher one, Claim returns ErrFenced and the item. The fence must be registered
// first. Otherwise a paused holder with fence 1 could write after the holder with fence 2 has read.
// The holder with fence 2 would then overwrite that sale.
func (l *Ledger) Claim(ctx context.Context, product, fence int64) (Item, error) {
	claimed := l.db.WithContext(ctx).Exec("UPDATE db_stock SET fence = ? WHERE id = ? AND fence < ?", fence, product, fence)
	if claimed.Error != nil {
		return Item{}, NothingWritten(ctx, claimed.Error)
	}
	// Read on the primary, because a follower may not have the last holder's sale yet.
	item, err := l.ReadPrimary(ctx, product)
	if err == nil && (claimed.RowsAffected == 0 || item.Fence != fence) {
		err = fenced(fence, item)
	}
	return item, err
}

func fenced(ours int64, item Item) error {
	return fmt.Errorf("%w: this holder has fence %d, the row has fence %d", ErrFenced, ours, item.Fence)
}

// Write sets the count of the item that Read returned. The holder of a lock must use Connect and a Writer
// instead.
func (l *Ledger) Write(ctx context.Context, item Item, count int) error {
	w, err := l.Connect(ctx)
	if err != nil {
		return err
	}
	defer w.Close()
	return w.Write(ctx, item, count)
}

// Connect takes a connection of the pool for one write. It returns ErrCancelled if ctx ends before
// a connection is free, and ErrUnavailable if none is free within 5 s. It sends no write.
//
// DANGER: the wait for a connection may outlast a lease. The holder must verify its lock after
// Connect, not before.
func (l *Ledger) Connect(ctx context.Context) (*Writer, error) {
	pool, err := l.db.DB()
	if err != nil {
		return nil, NothingWritten(ctx, err)
	}
	waiting, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	conn, err := pool.Conn(waiting)
	if err != nil {
		return nil, NothingWritten(ctx, fmt.Errorf("take a connection of the pool: %w", err))
	}
	return &Writer{conn: conn}, nil
}

// WriterOn returns a Writer that uses conn. The caller closes conn.
func WriterOn(conn *sql.Conn) *Writer { return &Writer{conn: conn, borrowed: true} }

// Writer writes on one connection. The caller must always close it, even after an error.
type Writer struct {
	conn     *sql.Conn
	borrowed bool
}

// Close returns the connection to its pool, unless the Writer is from WriterOn.
func (w *Writer) Close() {
	if !w.borrowed {
		_ = w.conn.Close()
	}
}

// Write sets the count, even if ctx has ended. item is what the caller has read: Write returns ErrConflict
// if the stock was reset since then.
func (w *Writer) Write(ctx context.Context, item Item, count int) error {
	return w.send(ctx, item, "UPDATE db_stock SET count = ? WHERE id = ? AND version = ?", count, item.ID, item.Version)
}

// WriteFenced is Write for the item that Claim returned. It returns ErrFenced if a later holder has
// claimed the row since (Kleppmann, "How to do distributed locking").
func (w *Writer) WriteFenced(ctx context.Context, item Item, count int) error {
	return w.send(ctx, item, "UPDATE db_stock SET count = ? WHERE id = ? AND version = ? AND fence = ?",
		count, item.ID, item.Version, item.Fence)
}

// refused says why a write for item found no row.
func (w *Writer) refused(ctx context.Context, item Item) error {
	// The context of a late holder has ended, so this query must not use that context.
	asking, cancel := uncancelled(ctx)
	defer cancel()
	var now Item
	err := w.conn.QueryRowContext(asking, "SELECT version, fence FROM db_stock WHERE id = ?", item.ID).Scan(&now.Version, &now.Fence)
	switch {
	case err != nil:
		return NothingWritten(context.WithoutCancel(ctx), Found(item.ID, err))
	case now.Version != item.Version:
		return fmt.Errorf("%w: the stock was reset, or sold by its version, since this request read it", ErrConflict)
	}
	return fenced(item.Fence, now)
}

// send writes the item's row.
func (w *Writer) send(ctx context.Context, item Item, query string, args ...any) error {
	writing, cancel := uncancelled(ctx)
	defer cancel()
	result, err := w.conn.ExecContext(writing, query, args...)
	if err != nil {
		return Indeterminate(err)
	}
	if rows, err := result.RowsAffected(); err != nil || rows == 1 {
		return Indeterminate(err)
	}
	return w.refused(ctx, item)
}

// Reset sets the count, and calls the functions in restock in the same transaction, which has locked the row.
// It raises the version, so that no sale writes that has read an older one. Fences count within a version.
func (l *Ledger) Reset(ctx context.Context, product int64, count int, restock ...func(*gorm.DB) error) error {
	for {
		err := l.db.WithContext(ctx).Transaction(func(tx *gorm.DB) error {
			set := tx.Exec("UPDATE db_stock SET count = ?, version = version + 1, fence = 0 WHERE id = ?", count, product)
			if set.Error == nil && set.RowsAffected == 0 {
				return fmt.Errorf("product %d: %w", product, ErrUnknownProduct)
			}
			err := set.Error
			for _, f := range restock {
				if err == nil {
					err = f(tx)
				}
			}
			return err
		})
		if isAnswer(err, deadlock) && ctx.Err() == nil { // sales lock some tables before the row
			continue
		}
		return NothingWritten(ctx, err)
	}
}

// Add creates a product with a count of 0. An existing product is not changed.
func (l *Ledger) Add(ctx context.Context, product int64) error {
	tx := l.db.WithContext(ctx).Exec(
		"INSERT IGNORE INTO db_stock (id, product_code, stock_code, count) VALUES (?, ?, '001', 0)", product, 1000+product)
	return NothingWritten(ctx, tx.Error)
}
