package locks

import (
	"context"
	"errors"
)

// MaxNames bounds the names in use of one kind of primitive in one backend.
const MaxNames = 1000

// Primitives are what one backend offers besides locks. nil: it has none such.
// All follow the rules of a Locker: a wait of 0 is one look; a wait that is over
// or a caller that is gone is ErrNotAcquired, and leaves nothing behind; a
// backend that can't be used is a stock.Unavailable.
type Primitives struct {
	Backend       string // redis or zk
	ReadWrite     ReadWriteLocker
	Semaphore     Semaphore
	Latch         Latch
	Barrier       Barrier
	DoubleBarrier DoubleBarrier
	Counter       Counter
	// Clear forgets all of them, whoever uses them: for resetting a class.
	Clear func(context.Context) error
}

var (
	// ErrUpgrade says that a reader asked to write: two readers that both did
	// would wait for each other for ever.
	ErrUpgrade = errors.New("a reader can't become a writer")
	// ErrFull says that as many names as there may be are in use: without a bound, anybody
	// could fill the backend with new ones.
	ErrFull = errors.New("too many names in use")
	// ErrMismatch says that others use the primitive with another size.
	ErrMismatch = errors.New("in use with another size")
)

// ReadWriteLocker lets many readers or one writer hold a key. Both holds are
// re-entrant by owner, and a writer may read as well; a reader that asks to
// write gets ErrUpgrade. No writer waits for readers that came after it.
type ReadWriteLocker interface {
	Read(ctx context.Context, r Request) (*Lock, error)
	Write(ctx context.Context, r Request) (*Lock, error)
}

// Semaphore has so many permits for each key. Permits are leased: those of a
// dead holder come back.
type Semaphore interface {
	// Acquire takes qty permits, all or none, of the key's total, which the first
	// user sets; another total is ErrMismatch while any permit is taken.
	Acquire(ctx context.Context, r Request, total, qty int) (*Lock, error)
}

// Latch opens when it was counted down to 0, and stays open.
type Latch interface {
	// TrySet sets the count where the latch is new, or has opened before.
	TrySet(ctx context.Context, key string, count int) (set bool, err error)
	// CountDown counts one down and returns what is left; at 0 the waiters go on.
	CountDown(ctx context.Context, key string) (left int, err error)
	// Await waits for r.Key to open; a latch that was never set is open.
	Await(ctx context.Context, r Request) error
}

// Barrier keeps everybody waiting while it is there.
type Barrier interface {
	Set(ctx context.Context, key string) (set bool, err error)
	Await(ctx context.Context, r Request) error
	Remove(ctx context.Context, key string) (removed bool, err error)
}

// DoubleBarrier has members begin together and end together. r.Owner is the member.
type DoubleBarrier interface {
	// Enter waits until so many have entered. A member that gives up takes
	// itself back.
	Enter(ctx context.Context, r Request, members int) error
	// Leave waits until all who entered have left, or died.
	Leave(ctx context.Context, r Request) error
}

// Count is a counter's value and its version, which rises with every change.
type Count struct {
	Value   int64 `json:"value"`
	Version int64 `json:"version"`
}

// Changed is what became of an operation on a counter.
type Changed struct {
	Succeeded bool  `json:"succeeded"`
	Before    int64 `json:"before"`
	After     int64 `json:"after"`
	// Locked: the compare-and-set was beaten too often, and a mutex did it.
	Locked  bool `json:"locked"`
	Retries int  `json:"retries"`
}

// Counter is an integer that all replicas share. It begins at 0.
type Counter interface {
	Get(ctx context.Context, key string) (Count, error)
	// Add adds delta (increment, decrement, add, subtract): by compare-and-set
	// first, under a mutex where that is beaten too often. Beyond int64 it does
	// not succeed.
	Add(ctx context.Context, r Request, delta int64) (Changed, error)
	// TrySet tries one compare-and-set from the value it reads.
	TrySet(ctx context.Context, key string, value int64) (Changed, error)
	// CompareAndSet sets the value where it is expect.
	CompareAndSet(ctx context.Context, key string, expect, value int64) (Changed, error)
	// ForceSet sets the value whatever it is.
	ForceSet(ctx context.Context, key string, value int64) (Changed, error)
	// Watch sends the value now and after changes until ctx ends, and closes then.
	// A slow listener misses values in between, never the last one.
	Watch(ctx context.Context, key string) (<-chan Count, error)
}

// Runner is a Strategy that has something to do besides the sales.
type Runner interface {
	// Run does it until ctx ends, brings to an end what can be within some seconds, and
	// returns. It outlives any backend's absence.
	Run(ctx context.Context)
}

// StockHolder is a Strategy that keeps the stock elsewhere than in the row.
type StockHolder interface {
	// Count is what is left of the product there. Clear forgets it, and the next
	// sale begins from the row again.
	Count(ctx context.Context, product int64) (int, error)
}
