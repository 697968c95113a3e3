package locks

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"oversell/api"
	"oversell/stock"
)

// Guard makes a Strategy of a Locker: a sale reads, checks and writes the count under the lock. A
// fenced sale first stores its fence in the row, and writes only if the row has no later fence.
func Guard(l Locker, ledger *stock.Ledger) Strategy {
	return &guard{decorated: decorated{l}, ledger: ledger}
}

type guard struct {
	decorated
	ledger   *stock.Ledger
	versions sync.Map // of each product's row, as a sale has last read it
}

func (g *guard) Deduct(ctx context.Context, o stock.Order) (receipt stock.Receipt, err error) {
	key, asked := api.Key(o.Product), time.Now()
	known := g.version(o.Product)
	Trace(ctx, api.Asked, key, o.Owner, 0)
	request := Request{Key: key, Also: o.Also, Owner: o.Owner, Wait: o.Wait, Pause: o.Pause, Lease: o.Lease, Fenced: o.Fenced}
	hold, err := g.Acquire(ctx, request)
	granted := time.Now()
	receipt.Waited = granted.Sub(asked)
	if err != nil {
		return receipt, err
	}
	defer func() {
		receipt.Held = time.Since(granted)
		receipt.Fence = hold.Fence()
		receipt.Warning = ReleaseWarning(hold.Release(ctx))
		Trace(ctx, api.Released, key, o.Owner, receipt.Fence)
	}()
	Trace(ctx, api.Granted, key, o.Owner, hold.Fence())
	if o.Nested {
		request.Wait = max(0, o.Wait-receipt.Waited)
		inner, err := g.Acquire(hold.Context(), request)
		if err != nil {
			return receipt, lossOr(hold, fmt.Errorf("acquire the lock a second time while holding it: %w", err))
		}
		defer func() { _ = inner.Release(ctx) }() // the outer Release reports a loss
	}
	receipt.Remaining, err = g.deduct(hold, o, known)
	return receipt, err
}

// deduct is the critical section of a sale. known is the row's version before the lock was acquired.
func (g *guard) deduct(hold *Lock, o stock.Order, known int64) (remaining int, err error) {
	ctx, key := hold.Context(), api.Key(o.Product) // the lock's key may differ from the product's key
	item, err := g.read(ctx, hold, o)
	// DANGER: a reset deletes the lock, and then raises the version. The next request may hold the lock already.
	if err == nil && item.Version != known && !o.Fenced {
		err = hold.Confirm()
	}
	if err != nil {
		return 0, lossOr(hold, err)
	}
	g.versions.Store(o.Product, item.Version)
	Trace(ctx, api.Read, key, hold.Owner(), hold.Fence())
	if item.Count < o.Qty {
		return item.Count, stock.ErrSoldOut
	}
	if err := Work(ctx, o.Work); err != nil {
		return item.Count, lossOr(hold, err)
	}
	// Take a connection before Verify, because the wait for a free connection may outlast the lease.
	writer, err := g.connect(ctx, hold)
	if err != nil {
		return item.Count, lossOr(hold, err)
	}
	defer writer.Close()
	if err := hold.Verify(); err != nil {
		return item.Count, lossOr(hold, fmt.Errorf("%w: %w", stock.ErrCancelled, err))
	}
	Trace(ctx, api.Writing, key, hold.Owner(), hold.Fence())
	// DANGER: a holder that is paused here, beyond its lease, still writes. No comparison with a clock
	// can prevent this late write; the fence can.
	if o.Fenced {
		err = writer.WriteFenced(ctx, item, item.Count-o.Qty)
	} else {
		err = writer.Write(ctx, item, item.Count-o.Qty)
	}
	if err != nil {
		return item.Count, err
	}
	Trace(ctx, api.Written, key, hold.Owner(), hold.Fence())
	return item.Count - o.Qty, nil
}

// version returns the version that a sale has last read, or 0, which is the version before any reset.
func (g *guard) version(product int64) int64 {
	v, _ := g.versions.Load(product)
	version, _ := v.(int64)
	return version
}

func (g *guard) connect(ctx context.Context, hold *Lock) (*stock.Writer, error) {
	if session := hold.grant.Session; session != nil {
		return stock.WriterOn(session), nil
	}
	return g.ledger.Connect(ctx)
}

// read reads the item. A fenced sale stores its fence in the row (Claim) before it reads. From then
// on, a holder with a lower fence cannot write.
//
// Claim fails if the row's fence is not lower than hold's. Then another holder of the cohort has
// used the fence, the backend has lost its counter, or hold's lease has expired. A holder that
// still has the lock gets a new fence above the row's.
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

// lossOr returns ErrLost if the lock was lost, which has then caused err. Otherwise it returns err.
func lossOr(hold *Lock, err error) error {
	if lost := hold.Verify(); errors.Is(lost, ErrLost) {
		return lost
	}
	return err
}

// ReleaseWarning explains the error of a release after work that succeeded. It is empty for nil.
func ReleaseWarning(err error) api.Text {
	switch {
	case err == nil:
		return api.Text{}
	case errors.Is(err, ErrNotHeld):
		return api.Text{
			EN: "the lock was lost before its release: another request may have held it at the same time",
			ZH: "释放之前锁已丢失：同一时间可能有另一个请求持有它",
		}
	default:
		return api.Textf("the lock could not be released and stays until its lease expires: %v", "锁未能释放，会保留到租期结束：%v", err)
	}
}

// Work sleeps for d to simulate work. It returns stock.ErrCancelled if ctx ends earlier.
func Work(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", stock.ErrCancelled, context.Cause(ctx))
	}
}
