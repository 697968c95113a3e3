package lockstest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"oversell/api"
	"oversell/stock"
)

func stepRaceAcross(ctx context.Context, s *Subject) error {
	return s.loses(ctx, 0, func() (int, error) { return s.stepRace(ctx, 1) })
}

func stepRaceAcrossLoses(ctx context.Context, s *Subject) error {
	return s.loses(ctx, 1, func() (int, error) { return s.stepRace(ctx, 1) })
}

func stepRaceInside(ctx context.Context, s *Subject) error {
	return s.loses(ctx, 0, func() (int, error) { return s.stepRace(ctx, 0) })
}

func stepRaceInsideLoses(ctx context.Context, s *Subject) error {
	return s.loses(ctx, 1, func() (int, error) { return s.stepRace(ctx, 0) })
}

func (s *Subject) loses(_ context.Context, want int, race func() (int, error)) error {
	lost, err := race()
	if err != nil {
		return err
	}
	if lost != want {
		return fmt.Errorf("%d updates lost, want %d", lost, want)
	}
	return nil
}

// stepRace has one sale stand between its read and its write while another one,
// in the rival process, sells or gives up. It returns the number of lost updates.
func (s *Subject) stepRace(ctx context.Context, rival int) (lost int, err error) {
	a, err := s.peer(ctx, 0)
	if err != nil {
		return 0, err
	}
	b, err := s.peer(ctx, rival)
	if err != nil {
		return 0, err
	}
	const stocked = 10
	product, err := s.NewProduct(ctx, stocked)
	if err != nil {
		return 0, err
	}
	first, err := a.deducting(ctx, order(product, "first", s.Patience), s.stands())
	if err != nil {
		return 0, err
	}
	errs := []error{b.deduct(ctx, order(product, "second", 300*time.Millisecond))}
	if err := first.resume(ctx); err != nil {
		return 0, err
	}
	_, err = first.sale(ctx)
	errs = append(errs, err)
	return s.lostUpdates(ctx, product, stocked, errs)
}

// stands is where a sale stands between its look at the stock and its write.
func (s *Subject) stands() api.Step {
	if s.Card.CriticalStep != "" {
		return s.Card.CriticalStep
	}
	return api.Read
}

// lostUpdates compares the sales that were made with what left the shelf.
func (s *Subject) lostUpdates(ctx context.Context, product int64, stocked int, sales []error) (int, error) {
	made := 0
	for _, err := range sales {
		switch f := new(fault); {
		case err == nil:
			made++
		case !errors.As(err, &f) || !f.Sure:
			return 0, fmt.Errorf("a sale with an unknown outcome: %w", err)
		}
	}
	if made == 0 {
		return 0, fmt.Errorf("nothing was sold: %w", errors.Join(sales...))
	}
	left, err := s.left(ctx, product)
	return made - (stocked - left), err
}

// stormSells asks for more than there is, in as many processes as the card
// speaks of, several tasks in each.
func stormSells(ctx context.Context, s *Subject) error {
	const stocked, tasks, rounds = 40, 4, 5
	all, err := s.peers(ctx, 3)
	if err != nil {
		return err
	}
	product, err := s.NewProduct(ctx, stocked)
	if err != nil {
		return err
	}
	calls := make([]*call, len(all))
	for i, p := range all {
		o := order(product, fmt.Sprintf("buyer-%d", i), s.Crew.Long)
		calls[i], err = p.send(command{Do: doStorm, Strategy: s.Card.ID, Order: o, Tasks: tasks, Rounds: rounds})
		if err != nil {
			return err
		}
	}
	sum := map[string]int{}
	for _, c := range calls {
		r, err := c.wait(ctx)
		if err != nil {
			return err
		}
		for outcome, n := range r.Tally {
			sum[outcome] += n
		}
	}
	left, err := s.left(ctx, product)
	if err != nil {
		return err
	}
	soldOut := outcomeOf(stock.ErrSoldOut)
	if sum[sold] != stocked || left != 0 || sum[soldOut] != len(all)*tasks*rounds-stocked {
		return fmt.Errorf("%d in stock, %d asked: %v, %d left", stocked, len(all)*tasks*rounds, sum, left)
	}
	return nil
}

// refusals sells what there is not, and hangs up in the middle of a sale.
func refusals(ctx context.Context, s *Subject) error {
	all, err := s.peers(ctx, 2)
	if err != nil {
		return err
	}
	const stocked = 3
	product, err := s.NewProduct(ctx, stocked)
	if err != nil {
		return err
	}
	mine, rival := all[0], all[1]
	tooMuch := order(product, "greedy", s.Patience)
	tooMuch.Qty = stocked + 1
	if err := is("4 of 3 pieces", mine.deduct(ctx, tooMuch), stock.ErrSoldOut); err != nil {
		return err
	}
	if err := is("a product that nobody has", mine.deduct(ctx, order(1<<60, "lost", s.Patience)), stock.ErrUnknownProduct); err != nil {
		return err
	}
	if err := s.hangsUp(ctx, mine, product); err != nil {
		return err
	}
	if left, err := s.left(ctx, product); err != nil || left != stocked {
		return fmt.Errorf("%d pieces are left of %d that were not sold (%w)", left, stocked, orNil(err))
	}
	return went("a sale after all those refusals", rival.deduct(ctx, order(product, "next", s.Patience)))
}

// hangsUp cancels a sale in its critical section, before it writes.
func (s *Subject) hangsUp(ctx context.Context, p peer, product int64) error {
	o := order(product, "fickle", s.Patience)
	if s.stands() != api.Writing { // by then the work is done
		o.Work = s.Crew.Long
	}
	sale, err := p.deducting(ctx, o, s.stands())
	if err != nil {
		return err
	}
	if err := sale.cancel(ctx); err != nil {
		return err
	}
	if err := sale.resume(ctx); err != nil {
		return err
	}
	_, err = sale.sale(ctx)
	return is("a sale whose caller went away before the write", err, stock.ErrCancelled, errCancelled)
}
