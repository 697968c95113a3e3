package stock

import (
	"context"
	"database/sql"
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

// Claim registers a fence in the row, then reads the item on the primary. ErrFenced: the
// row has this fence or a later one already, which the item names; nothing was registered.
//
// A fence that only the write carries comes too late for a read-modify-write: a holder with
// fence 1 that wakes up after the next holder (fence 2) has read, and before it has written,
// would still write, and fence 2 would then overwrite that sale. After Claim, a write with
// any other fence is refused.
func (l *Ledger) Claim(ctx context.Context, product, fence int64) (Item, error) {
	claimed := l.db.WithContext(ctx).Exec("UPDATE db_stock SET fence = ? WHERE id = ? AND fence < ?", fence, product, fence)
	if claimed.Error != nil {
		return Item{}, NothingWritten(ctx, claimed.Error)
	}
	// A follower may not have the last holder's sale yet.
	item, err := l.ReadPrimary(ctx, product)
	if err == nil && (claimed.RowsAffected == 0 || item.Fence != fence) {
		err = fenced(fence, item)
	}
	return item, err
}

func fenced(ours int64, item Item) error {
	return fmt.Errorf("%w: this holder has fence %d, the row has fence %d", ErrFenced, ours, item.Fence)
}

// Write sets the count to what the caller worked out from its read. A caller that holds a
// lock takes the connection first: see Connect.
func (l *Ledger) Write(ctx context.Context, product int64, count int) error {
	w, err := l.Connect(ctx)
	if err != nil {
		return err
	}
	defer w.Close()
	return w.Write(ctx, product, count)
}

// Connect takes a connection of the pool for one write. ErrCancelled: ctx ended before one
// was free; ErrUnavailable: none was free within 5 s. Nothing was sent in either case.
//
// DANGER: the pool may make its callers wait for longer than a lease lasts. The holder of a
// lock checks it after Connect, not before.
func (l *Ledger) Connect(ctx context.Context) (*Writer, error) {
	pool, err := l.db.DB()
	if err != nil {
		return nil, NothingWritten(ctx, err)
	}
	waiting, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	conn, err := pool.Conn(waiting)
	if err != nil {
		return nil, NothingWritten(ctx, fmt.Errorf("no connection: %w", err))
	}
	return &Writer{conn: conn}, nil
}

// WriterOn writes on a connection that the caller keeps.
func WriterOn(conn *sql.Conn) *Writer { return &Writer{conn: conn, borrowed: true} }

// Writer is a connection that is ready to write. Close it on every way out.
type Writer struct {
	conn     *sql.Conn
	borrowed bool
}

// Close returns the connection to the pool that it came from.
func (w *Writer) Close() {
	if !w.borrowed {
		_ = w.conn.Close()
	}
}

// Write sets the count, also when ctx has ended.
func (w *Writer) Write(ctx context.Context, product int64, count int) error {
	rows, err := w.send(ctx, "UPDATE db_stock SET count = ? WHERE id = ?", count, product)
	if err == nil && rows == 0 {
		return fmt.Errorf("product %d: %w", product, ErrUnknownProduct)
	}
	return err
}

// WriteFenced sets the count if the fence is still the one that Claim registered, also when
// ctx has ended. ErrFenced: a later holder has claimed the row, and nothing changed
// (Kleppmann, "How to do distributed locking").
func (w *Writer) WriteFenced(ctx context.Context, product int64, count int, fence int64) error {
	rows, err := w.send(ctx, "UPDATE db_stock SET count = ? WHERE id = ? AND fence = ?", count, product, fence)
	if err != nil || rows == 1 {
		return err
	}
	// No row matched: a later fence, or no such product? A late holder's context has ended.
	asking, cancel := uncancelled(ctx)
	defer cancel()
	var item Item
	err = w.conn.QueryRowContext(asking, "SELECT fence FROM db_stock WHERE id = ?", product).Scan(&item.Fence)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return fmt.Errorf("product %d: %w", product, ErrUnknownProduct)
	case err != nil:
		return NothingWritten(asking, err)
	}
	return fenced(fence, item)
}

// send executes one statement that writes, and returns how many rows it matched.
func (w *Writer) send(ctx context.Context, query string, args ...any) (rows int64, err error) {
	writing, cancel := uncancelled(ctx)
	defer cancel()
	result, err := w.conn.ExecContext(writing, query, args...)
	if err != nil {
		return 0, Indeterminate(err)
	}
	rows, err = result.RowsAffected()
	return rows, Indeterminate(err)
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

// uncancelled lets a write that was begun end. A statement whose caller hangs
// up goes on inside the server: were the lock released meanwhile, the write
// would land in the next holder's critical section.
func uncancelled(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), writeTimeout)
}
