package lockstest

import (
	"context"
	"fmt"

	"oversell/locks"
	"oversell/stock"
)

func pauseSafe(ctx context.Context, s *Subject) error { return s.pause(ctx, 0) }

func pauseUnsafe(ctx context.Context, s *Subject) error { return s.pause(ctx, 1) }

func (s *Subject) pause(ctx context.Context, want int) error {
	return s.loses(ctx, want, func() (int, error) {
		lost, _, err := s.writesLate(ctx, false)
		return lost, err
	})
}

// fencedWrite is the same with a fence on the write: the late one is refused,
// and nothing is lost.
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
	sale, err := sleeper.deducting(ctx, s.sale(product, "sleeper", fenced), locks.Writing)
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
	if err := sale.resume(ctx); err != nil {
		return 0, nil, err
	}
	_, late = sale.sale(ctx)
	lost, err = s.lostUpdates(ctx, product, stocked, []error{successor, late})
	return lost, late, err
}

// sale is an order of one piece with a short lease.
func (s *Subject) sale(product int64, owner string, fenced bool) stock.Order {
	o := order(product, owner, s.Patience)
	o.Lease, o.Fenced = s.short("", "").Lease, fenced
	return o
}
