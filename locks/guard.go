package locks

import (
	"context"
	"errors"
	"fmt"
	"time"

	"oversell/api"
	"oversell/stock"
)

// Guard makes a Strategy of a Locker: acquire, read, check, write, release. With a fence it
// is acquire, claim, read, check, write if the claim still stands, release.
func Guard(l Locker, ledger *stock.Ledger) Strategy { return &guard{Locker: l, ledger: ledger} }

type guard struct {
	Locker
	ledger *stock.Ledger
}

func (g *guard) Deduct(ctx context.Context, o stock.Order) (receipt stock.Receipt, err error) {
	key, asked := Key(o.Product), time.Now()
	Trace(ctx, Asked, key, o.Owner, 0)
	hold, err := g.Acquire(ctx, Request{Key: key, Owner: o.Owner, Wait: o.Wait, Lease: o.Lease, Fenced: o.Fenced})
	granted := time.Now()
	receipt.Waited = granted.Sub(asked)
	if err != nil {
		return receipt, err
	}
	defer func() {
		receipt.Held = time.Since(granted)
		receipt.Fence = hold.Fence()
		receipt.Warning = lateNews(hold.Release(ctx))
		Trace(ctx, Released, key, o.Owner, receipt.Fence)
	}()
	Trace(ctx, Granted, key, o.Owner, hold.Fence())
	if o.Nested {
		inner, err := g.Acquire(hold.Context(), Request{Key: key, Owner: o.Owner, Wait: max(0, o.Wait-receipt.Waited), Lease: o.Lease, Fenced: o.Fenced})
		if err != nil {
			return receipt, lossOr(hold, fmt.Errorf("once more, inside: %w", err))
		}
		defer func() { _ = inner.Release(ctx) }() // what counts is the outer one's
	}
	receipt.Remaining, err = g.deduct(hold, o)
	return receipt, err
}

// deduct is the critical section.
func (g *guard) deduct(hold *Lock, o stock.Order) (remaining int, err error) {
	ctx := hold.Context()
	item, err := g.read(ctx, hold, o)
	if err != nil {
		return 0, lossOr(hold, err)
	}
	Trace(ctx, Read, hold.Key(), hold.Owner(), hold.Fence())
	if item.Count < o.Qty {
		return item.Count, stock.ErrSoldOut
	}
	if err := Work(ctx, o.Work); err != nil {
		return item.Count, lossOr(hold, err)
	}
	// The connection first: a wait for a free one may outlast the lease.
	writer, err := g.connect(ctx, hold)
	if err != nil {
		return item.Count, lossOr(hold, err)
	}
	defer writer.Close()
	if err := hold.Verify(); err != nil {
		return item.Count, lossOr(hold, fmt.Errorf("%w: %w", stock.ErrCancelled, err))
	}
	Trace(ctx, Writing, hold.Key(), hold.Owner(), hold.Fence())
	// DANGER: a holder paused between this line and the next, past its lease, writes all
	// the same. No look at a clock closes that gap; the fence does.
	if o.Fenced {
		err = writer.WriteFenced(ctx, o.Product, item.Count-o.Qty, hold.Fence())
	} else {
		err = writer.Write(ctx, o.Product, item.Count-o.Qty)
	}
	if err != nil {
		return item.Count, err
	}
	Trace(ctx, Written, hold.Key(), hold.Owner(), hold.Fence())
	return item.Count - o.Qty, nil
}

// connect takes the connection for the write: the one that holds the lock, where one does.
func (g *guard) connect(ctx context.Context, hold *Lock) (*stock.Writer, error) {
	if session := hold.grant.Session; session != nil {
		return stock.WriterOn(session), nil
	}
	return g.ledger.Connect(ctx)
}

// read reads the item. With a fence it claims the row first: from then on no holder with
// another fence can write what it read before.
//
// The row keeps the highest fence ever claimed. Where it is not below ours, either another
// task of our cohort has used the fence, or the backend has lost its counter, or we are
// late: a holder that still has the lock gets a fresh fence above it.
func (g *guard) read(ctx context.Context, hold *Lock, o stock.Order) (stock.Item, error) {
	if !o.Fenced {
		return g.ledger.Read(ctx, o.Product)
	}
	item, err := g.ledger.Claim(ctx, o.Product, hold.Fence())
	if !errors.Is(err, stock.ErrFenced) {
		return item, err
	}
	if err := hold.AdvanceFence(ctx, item.Fence); err != nil {
		return item, fmt.Errorf("%w: %w", stock.ErrFenced, err)
	}
	return g.ledger.Claim(ctx, o.Product, hold.Fence())
}

// Clear passes on to the locker.
func (g *guard) Clear(ctx context.Context, key string) error { return clearOf(ctx, g.Locker, key) }

// lossOr answers ErrLost where the hold was lost, whatever failed because of it.
func lossOr(hold *Lock, err error) error {
	if lost := hold.Verify(); errors.Is(lost, ErrLost) {
		return lost
	}
	return err
}

// lateNews is what the holder of a finished sale must know about its release.
func lateNews(err error) string {
	switch {
	case err == nil:
		return ""
	case errors.Is(err, ErrNotHeld):
		return "the lock was lost before it was released: a rival may have worked at the same time"
	default:
		return "the lock could not be released and must run out: " + err.Error()
	}
}

// Key is what a sale of the product locks.
func Key(product int64) string { return api.Key(product) }

// Work spends d in the critical section, or less when ctx ends: then
// stock.ErrCancelled, for nothing was written yet.
func Work(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", stock.ErrCancelled, context.Cause(ctx))
	}
}
