package lockstest

import (
	"context"
	"errors"
	"fmt"

	"oversell/api"
	"oversell/stock"
)

// lateReceipt pauses a holder past its lease, right before its write. The experiment pause
// judges whether an update is lost.
func lateReceipt(ctx context.Context, s *Subject) error {
	_, _, err := s.writesLate(ctx, false)
	return err
}

// fencedWrite pauses a holder in the same way, with fenced writes: the late one is rejected, and
// no update is lost.
func fencedWrite(ctx context.Context, s *Subject) error {
	lost, late, err := s.writesLate(ctx, true)
	if err != nil {
		return err
	}
	if lost != 0 {
		return fmt.Errorf("%d updates lost", lost)
	}
	return is("the late write", late, stock.ErrFenced)
}

// writesLate stops a holder between its last look at the lock and its write, for
// longer than its lease, and wakes it when its successor has sold. It returns the
// number of lost updates, and what became of the late sale.
func (s *Subject) writesLate(ctx context.Context, fenced bool) (lost int, late, err error) {
	const stocked = 10
	product, err := s.NewProduct(ctx, stocked)
	if err != nil {
		return 0, nil, err
	}
	rival, err := s.peer(ctx, 0)
	if err != nil {
		return 0, nil, err
	}
	sleeper, err := s.recruit(ctx)
	if err != nil {
		return 0, nil, err
	}
	defer sleeper.Kill()
	sale, err := sleeper.deducting(ctx, s.sale(product, "sleeper", fenced), api.Writing)
	if err != nil {
		return 0, nil, err
	}
	if err := sleeper.Stop(); err != nil {
		return 0, nil, err
	}
	second := s.sale(product, "successor", fenced)
	second.Wait = s.Lease + s.Patience
	successor := rival.deduct(ctx, second)
	if err := sleeper.Wake(); err != nil {
		return 0, nil, err
	}
	if successor != nil {
		return 0, nil, fmt.Errorf("the sale of the successor, after the sleeper's lease: %w", successor)
	}
	if err := sale.resume(ctx); err != nil {
		return 0, nil, err
	}
	receipt, late := sale.sale(ctx)
	if late == nil && receipt.Warning == "" {
		return 0, nil, errors.New("the late sale's receipt does not warn of the lost lock")
	}
	lost, err = s.lostUpdates(ctx, product, stocked, []error{successor, late})
	return lost, late, err
}

// sale is an order of one piece with a short lease.
func (s *Subject) sale(product int64, owner string, fenced bool) stock.Order {
	o := order(product, owner, s.Patience)
	o.Lease, o.Fenced = s.short("", "").Lease, fenced
	return o
}

// amnesia wipes the backend's state between fenced sales, and with it what some
// know of the fences. The row remembers: the sales go on, above its fence.
func amnesia(ctx context.Context, s *Subject) error {
	all, err := s.peers(ctx, 2)
	if err != nil {
		return err
	}
	const before, after = 3, 2
	product, err := s.NewProduct(ctx, before+after)
	if err != nil {
		return err
	}
	last := int64(0)
	for i := range before + after {
		if i == before {
			if err := went("wipe the lock", all[0].clear(ctx, api.Key(product))); err != nil {
				return err
			}
		}
		o := order(product, fmt.Sprintf("owner-%d", i), s.Patience)
		o.Fenced = true
		c, err := all[i%2].send(command{Do: doDeduct, Strategy: s.Card.ID, Order: o})
		if err != nil {
			return err
		}
		receipt, err := c.sale(ctx)
		if err != nil {
			return fmt.Errorf("sale %d, after %d were made before the backend forgot: %w", i+1, before, err)
		}
		if receipt.Fence <= last {
			return fmt.Errorf("sale %d has fence %d, the one before it had %d", i+1, receipt.Fence, last)
		}
		last = receipt.Fence
	}
	return nil
}
