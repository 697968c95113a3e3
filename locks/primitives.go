package locks

import (
	"context"
	"errors"

	"gorm.io/gorm"
)

// MaxNames is the largest number of names in use for one kind of primitive in one backend.
const MaxNames = 1000

// Primitives are the synchronization primitives of one backend, besides locks. A nil field means
// that the backend lacks that primitive. An operation with a wait of 0 tries once. An operation
// returns ErrNotAcquired when its wait ends or its context is cancelled, and then leaves no data in
// the backend. It returns stock.Unavailable when the backend cannot be used.
type Primitives struct {
	Backend       string // redis or zk
	ReadWrite     ReadWriteLocker
	Semaphore     Semaphore
	Latch         Latch
	Barrier       Barrier
	DoubleBarrier DoubleBarrier
	Counter       Counter
	// Clear deletes all primitives of the backend for a reset, also those in use.
	Clear func(context.Context) error
}

var (
	// ErrUpgrade rejects a reader that requests the write lock. Two such readers would deadlock.
	ErrUpgrade = errors.New("a reader can't become a writer")
	// ErrFull says that MaxNames names are in use. Without a limit, clients could fill the backend.
	ErrFull = errors.New("too many names of primitives are in use")
	// ErrMismatch says that the primitive is in use with another size than the requested one.
	ErrMismatch = errors.New("this name is in use with another number of permits or members")
)

// ReadWriteLocker lets many readers or one writer hold a key. A holder may acquire a key again, and
// a writer may also read. A reader's Write returns ErrUpgrade. No writer waits for later readers.
type ReadWriteLocker interface {
	Read(ctx context.Context, r Request) (*Lock, error)
	Write(ctx context.Context, r Request) (*Lock, error)
}

// Semaphore has a number of permits for each key. Permits of a dead holder expire with their lease.
type Semaphore interface {
	// Acquire takes qty permits of the key's total, all or none. The first user sets the
	// total. While any permit is taken, Acquire returns ErrMismatch for another total.
	Acquire(ctx context.Context, r Request, total, qty int) (*Lock, error)
}

// Latch opens when its count reaches 0, and stays open until TrySet sets a new count.
type Latch interface {
	// TrySet sets the count if the latch is new or open.
	TrySet(ctx context.Context, key string, count int) (set bool, err error)
	// CountDown reduces the count by 1 and returns the new count. At 0, the waiters are released.
	CountDown(ctx context.Context, key string) (left int, err error)
	// Await waits until the latch r.Key is open. A latch that was never set is open.
	Await(ctx context.Context, r Request) error
}

// Barrier makes all callers of Await wait until the barrier is removed.
type Barrier interface {
	Set(ctx context.Context, key string) (set bool, err error)
	Await(ctx context.Context, r Request) error
	Remove(ctx context.Context, key string) (removed bool, err error)
}

// DoubleBarrier lets its members (r.Owner) begin a task together and end the task together.
type DoubleBarrier interface {
	// Enter waits until the given number of members have entered. A member whose wait ends before
	// that does not count as entered.
	Enter(ctx context.Context, r Request, members int) error
	// Leave waits until all members have left, or have died.
	Leave(ctx context.Context, r Request) error
}

// Count is the value of a counter and its version, which rises with every change.
type Count struct {
	Value   int64 `json:"value"`
	Version int64 `json:"version"`
}

// Changed is the result of an operation on a counter.
type Changed struct {
	Succeeded bool  `json:"succeeded"`
	Before    int64 `json:"before"`
	After     int64 `json:"after"`
	// Locked means that compare-and-set failed too often, so the change used a mutex.
	Locked  bool `json:"locked"`
	Retries int  `json:"retries"`
}

// Counter is an integer that all replicas share. It begins at 0.
type Counter interface {
	Get(ctx context.Context, key string) (Count, error)
	// Add adds delta by compare-and-set, or under a mutex if compare-and-set fails too often.
	// It does not succeed if the new value would exceed int64.
	Add(ctx context.Context, r Request, delta int64) (Changed, error)
	// TrySet reads the value, and tries one compare-and-set from the value that it read.
	TrySet(ctx context.Context, key string, value int64) (Changed, error)
	// CompareAndSet sets the value if the current value is expect.
	CompareAndSet(ctx context.Context, key string, expect, value int64) (Changed, error)
	// CompareVersion sets the value if the current version is version, as Curator's
	// SharedCount.trySetCount(VersionedValue) does. A change back to the same value does not deceive it.
	CompareVersion(ctx context.Context, key string, version, value int64) (Changed, error)
	// ForceSet sets the value unconditionally.
	ForceSet(ctx context.Context, key string, value int64) (Changed, error)
	// Watch sends the current value, and then each new value. It closes the channel when ctx
	// ends. A slow receiver may miss values, but never the last one.
	Watch(ctx context.Context, key string) (<-chan Count, error)
}

// Runner is a Strategy that also works in the background.
type Runner interface {
	// Run works until ctx ends, then finishes within seconds. An outage does not end Run.
	Run(ctx context.Context)
}

// StockHolder is a Strategy that keeps pieces of the stock outside the product's row in db_stock.
type StockHolder interface {
	// Count returns the number of pieces for sale, wherever the strategy keeps them.
	Count(ctx context.Context, product int64) (int, error)
	// Holds reports whether pieces, or a copy of the count, are outside the row now. Then the next sale
	// by another strategy needs a reset first.
	Holds(ctx context.Context, product int64) (bool, error)
	// Restock deletes the pieces in other tables, in the transaction of a reset, which has locked the row. A
	// holder that keeps pieces outside MySQL is also a Cleaner, whose Clear is called after the transaction.
	Restock(tx *gorm.DB, product int64) error
}
