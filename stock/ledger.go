package stock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"gorm.io/gorm"
	"gorm.io/plugin/dbresolver"
)

// writeTimeout bounds a write that no longer listens to its caller.
const writeTimeout = 5 * time.Second

// Ledger reads and writes db_stock. Read and Write are two statements, and
// between them lies the whole subject: a rival may write there too.
type Ledger struct {
	db *gorm.DB
}

// NewLedger keeps the stock in db, which Open gives.
func NewLedger(db *gorm.DB) *Ledger { return &Ledger{db: db} }

// Read returns the item, ErrUnknownProduct, ErrCancelled or ErrUnavailable.
func (l *Ledger) Read(ctx context.Context, product int64) (Item, error) {
	var item Item
	err := l.db.WithContext(ctx).Take(&item, product).Error
	if errors.Is(err, gorm.ErrRecordNotFound) {
		return item, fmt.Errorf("product %d: %w", product, ErrUnknownProduct)
	}
	return item, NothingWritten(ctx, err)
}

// ReadPrimary is Read, but never at the follower of ReadAt.
func (l *Ledger) ReadPrimary(ctx context.Context, product int64) (Item, error) {
	return NewLedger(l.db.Clauses(dbresolver.Write)).Read(ctx, product)
}

// Write sets the count to what the caller worked out from its read.
func (l *Ledger) Write(ctx context.Context, product int64, count int) error {
	rows, err := l.send(ctx, "UPDATE db_stock SET count = ? WHERE id = ?", count, product)
	if err == nil && rows == 0 {
		return fmt.Errorf("product %d: %w", product, ErrUnknownProduct)
	}
	return err
}

// WriteFenced sets the count unless a later fence has written: then ErrFenced,
// and nothing changed (Kleppmann, "How to do distributed locking").
func (l *Ledger) WriteFenced(ctx context.Context, product int64, count int, fence int64) error {
	rows, err := l.send(ctx,
		"UPDATE db_stock SET count = ?, fence = ? WHERE id = ? AND fence <= ?", count, fence, product, fence)
	if err != nil || rows == 1 {
		return err
	}
	// No row matched: a later fence, or no such product? Whoever comes late has lost its
	// context with its lock.
	asking, cancel := uncancelled(ctx)
	defer cancel()
	item, err := l.ReadPrimary(asking, product)
	if err != nil {
		return err
	}
	return fmt.Errorf("%w: this holder has fence %d, fence %d has written", ErrFenced, fence, item.Fence)
}

// Reset sets the count and forgets version and fence.
func (l *Ledger) Reset(ctx context.Context, product int64, count int) error {
	tx := l.db.WithContext(ctx).Exec(
		"UPDATE db_stock SET count = ?, version = 0, fence = 0 WHERE id = ?", count, product)
	if tx.Error == nil && tx.RowsAffected == 0 {
		return fmt.Errorf("product %d: %w", product, ErrUnknownProduct)
	}
	return NothingWritten(ctx, tx.Error)
}

// Add puts a product on the shelf that was not there, with no pieces yet. One
// that is there stays as it is.
func (l *Ledger) Add(ctx context.Context, product int64) error {
	tx := l.db.WithContext(ctx).Exec(
		"INSERT IGNORE INTO db_stock (id, product_code, stock_code, count) VALUES (?, ?, '001', 0)", product, 1000+product)
	return NothingWritten(ctx, tx.Error)
}

// send sends one statement that writes, and says how many rows it found. Whoever got no
// connection has sent nothing: only after that is an outcome unknown.
func (l *Ledger) send(ctx context.Context, query string, args ...any) (rows int64, err error) {
	pool, err := l.db.DB()
	if err != nil {
		return 0, NothingWritten(ctx, err)
	}
	queueing, leave := uncancelled(ctx)
	defer leave()
	conn, err := pool.Conn(queueing)
	if err != nil {
		return 0, NothingWritten(ctx, fmt.Errorf("no connection: %w", err))
	}
	defer func() { _ = conn.Close() }() // back to the pool
	writing, cancel := uncancelled(ctx)
	defer cancel()
	result, err := conn.ExecContext(writing, query, args...)
	if err != nil {
		return 0, MaybeWritten(err)
	}
	rows, err = result.RowsAffected()
	return rows, MaybeWritten(err)
}

// uncancelled lets a write that was begun end. A statement whose caller hangs
// up goes on inside the server: were the lock released meanwhile, the write
// would land in the next holder's critical section.
func uncancelled(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), writeTimeout)
}
