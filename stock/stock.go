// Package stock reads and writes the stock in MySQL, and the tables of the scenarios.
package stock

import (
	"time"

	"oversell/api"
)

// Item is one row of db_stock, which has the stock of one product.
type Item struct {
	ID          int64  `gorm:"primaryKey" json:"id"`
	ProductCode string `json:"product_code"`
	StockCode   string `json:"stock_code"`
	Count       int    `json:"count"`
	// Version is raised by each write of the strategy version (tutorial 1.6.2), and by each reset. It never falls.
	Version int64 `json:"version"`
	// Fence is the highest registered fence of this version. Only a reset lowers it, as it raises the version.
	Fence int64 `json:"fence"`
}

// TableName returns the tutorial's name for the table.
func (Item) TableName() string { return "db_stock" }

// Order is a request to buy Qty items of one product.
type Order struct {
	Product int64
	Qty     int
	// Owner names the request as the owner of a lock. Go gives a goroutine no id that could name it.
	Owner string
	// Work is extra time between read and write, so that students can watch the critical section.
	Work time.Duration
	// Outside is extra time before the lock, in place of work that needs no lock.
	Outside time.Duration
	// Wait limits the wait for the lock. A Lease of 0 means the strategy's default.
	Wait, Lease time.Duration
	// Pause is the pause between two tries of a lock that polls, in place of its own. 0 means its own.
	Pause time.Duration
	// Fenced means that the row rejects the write if a later holder has registered its fence.
	Fenced bool
	// Also names further locks that the sale needs, in the order of the request.
	Also []string
	// Nested makes the sale acquire its lock twice, like a method that calls another locked method.
	Nested bool
}

// Uncounted means that the remaining stock is unknown, because other sales could change it first.
const Uncounted = -1

// Receipt describes a sale, and how long each part of the sale took.
type Receipt struct {
	// Remaining is the stock after the sale, or Uncounted.
	Remaining int
	Fence     int64
	// Waited is the time until the lock was acquired. Held is the time in the critical section, and
	// Pooled is the wait for a database connection. These times do not overlap.
	Waited, Held, Pooled time.Duration
	// Retries counts the attempts that failed because another request wrote first, or had the lock.
	Retries int
	// Warning is set if the sale succeeded, but the lock was then found lost or could not be released.
	Warning api.Text
}
