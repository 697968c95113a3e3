package locks_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"oversell/locks"
	"oversell/locks/local"
)

// A lock protects a critical section. A hundred tasks each read a count and write it back, less
// one.
func ExampleLocker() {
	ctx := context.Background()
	locker := local.Mutex() // or redislock.Redis, zklock.ZK: any locks.Locker
	count := 100

	var tasks sync.WaitGroup
	for i := range 100 {
		tasks.Go(func() {
			lock, err := locker.Acquire(ctx, locks.Request{
				Key: "stock:1", Owner: fmt.Sprint("task-", i), Wait: time.Minute,
			})
			if err != nil {
				fmt.Println(err)
				return
			}
			// Release even if ctx is cancelled: a lock that is never released blocks all other tasks.
			defer func() { _ = lock.Release(ctx) }()
			read := count
			count = read - 1
		})
	}
	tasks.Wait()
	fmt.Println(count, "left")
	// Output: 0 left
}

// The work under a lock runs in the lock's context, which ends as soon as the lock is lost.
func ExampleLock_Context() {
	ctx := context.Background()
	lock := locks.NewLock(ctx, locks.Grant{
		Key: "stock:1", Owner: "task-1", Asked: time.Now(), Lease: 30 * time.Millisecond,
		// The backend has granted the key to another owner, and rejects the renewal.
		Renew:   func(context.Context) error { return locks.ErrNotHeld },
		Release: func(context.Context) error { return locks.ErrNotHeld },
	})

	err := locks.Work(lock.Context(), time.Hour)
	fmt.Println("the work was stopped:", err != nil)
	fmt.Println("the lock is lost:", errors.Is(context.Cause(lock.Context()), locks.ErrLost))
	fmt.Println("nothing to release:", errors.Is(lock.Release(ctx), locks.ErrNotHeld))
	// Output:
	// the work was stopped: true
	// the lock is lost: true
	// nothing to release: true
}

// row is the data that the locks protect. It stores the highest fence that a holder registered.
type row struct {
	count int
	fence int64
}

// claim stores the fence in the row, and returns the count. It returns false if the stored fence is
// not lower than this fence.
func (r *row) claim(fence int64) (count int, ok bool) {
	if fence <= r.fence {
		return 0, false
	}
	r.fence = fence
	return r.count, true
}

// write sets the count. It returns false if a later holder has stored its fence in the row.
func (r *row) write(fence int64, count int) bool {
	if fence != r.fence {
		return false
	}
	r.count = count
	return true
}

// No lock can stop a holder that sleeps past its lease. With the fence, the row itself rejects the
// late write.
func ExampleLock_Fence() {
	ctx := context.Background()
	grant := func(owner string, fence int64) *locks.Lock {
		return locks.NewLock(ctx, locks.Grant{
			Key: "stock:1", Owner: owner, Asked: time.Now(), Lease: time.Minute, Fence: fence,
			Release: func(context.Context) error { return nil },
		})
	}
	stock := row{count: 10}

	paused := grant("task-1", 1)
	seen, _ := stock.claim(paused.Fence())
	// Here task-1 sleeps, its lease expires, and the backend grants the key to task-2.
	next := grant("task-2", 2)
	count, _ := stock.claim(next.Fence())
	fmt.Println("task-2 wrote:", stock.write(next.Fence(), count-1))
	// task-1 wakes up and still believes that it holds the lock.
	fmt.Println("task-1 wrote:", stock.write(paused.Fence(), seen-1))
	fmt.Println(stock.count, "left")

	_, _ = next.Release(ctx), paused.Release(ctx)
	// Output:
	// task-2 wrote: true
	// task-1 wrote: false
	// 9 left
}
