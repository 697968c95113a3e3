// Package stock is what the shop sells: items, orders, and the ledger that
// holds them in MySQL. It knows no lock: what keeps two sales of one piece
// apart is the business of package locks.
package stock

import "time"

// Item is one row of db_stock: so many pieces of a product in a warehouse.
type Item struct {
	ID          int64  `gorm:"primaryKey" json:"id"`
	ProductCode string `json:"product_code"`
	StockCode   string `json:"stock_code"`
	Count       int    `json:"count"`
	// Version counts the writes of the version strategy (tutorial 1.6.2).
	Version int64 `json:"version"`
	// Fence is the highest fence that a holder has claimed the row with. It never falls,
	// so a write by an older holder can be told from one by the newest.
	Fence int64 `json:"fence"`
}

// TableName is the tutorial's.
func (Item) TableName() string { return "db_stock" }

// Order asks for Qty pieces of one product.
type Order struct {
	Product int64
	Qty     int
	// Owner names the task that asks. A goroutine has no identity of its own,
	// so whoever starts the task gives it one.
	Owner string
	// Work is extra time spent between the read and the write, so that a
	// class can watch the critical section.
	Work time.Duration
	// Wait is the patience in the queue; Lease is the life of a grant, 0 for
	// the strategy's own.
	Wait, Lease time.Duration
	// Fenced asks for the write to be refused once a later holder has claimed the row.
	Fenced bool
	// Nested asks for the lock a second time inside the critical section, as a
	// method does that calls another one which locks as well.
	Nested bool
}

// Uncounted is what remains where a strategy can't say it without counting again: by
// then it might be another number.
const Uncounted = -1

// Receipt says what a deduction did and where its time went.
type Receipt struct {
	// Remaining is what the sale left on the shelf, or Uncounted.
	Remaining int
	Fence     int64
	// Waited was spent in the lock's queue, Held inside the critical section,
	// Pooled waiting for a database connection. They never overlap.
	Waited, Held, Pooled time.Duration
	// Retries counts the attempts that a rival beat.
	Retries int
	// Warning tells the holder what went wrong after the sale: the lock was
	// lost while it wrote, or could not be released and must run out.
	Warning string
}
