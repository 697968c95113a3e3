package lockstest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"oversell/stock"
)

// outage takes each backend away under one process, and brings it back. Nothing
// is opened again.
func outage(ctx context.Context, s *Subject) error {
	p, err := s.peer(ctx, 0)
	if err != nil {
		return err
	}
	const stocked = 100
	product, err := s.NewProduct(ctx, stocked)
	if err != nil {
		return err
	}
	made := 0
	for _, backend := range s.Card.Backends {
		if err := went("a sale before the outage", p.deduct(ctx, order(product, "before", s.Patience))); err != nil {
			return err
		}
		if err := s.without(ctx, p, backend, product); err != nil {
			return fmt.Errorf("without %s: %w", backend, err)
		}
		if err := s.recovers(ctx, p, product); err != nil {
			return fmt.Errorf("%s is back: %w", backend, err)
		}
		made += 2
	}
	left, err := s.left(ctx, product)
	if err == nil && left != stocked-made {
		err = fmt.Errorf("%d sold of %d, and %d are left", made, stocked, left)
	}
	return err
}

// without sells while the backend is away: one try, and with a wait.
func (s *Subject) without(ctx context.Context, p peer, backend string, product int64) (err error) {
	away, ok := s.Outages[backend]
	if !ok {
		return fmt.Errorf("lockstest: the subject has no Outage for %s, which the card names", backend)
	}
	if err := away.Stop(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, away.Start(context.WithoutCancel(ctx))) }()
	for _, wait := range []time.Duration{0, time.Second} {
		soon, cancel := context.WithTimeout(ctx, wait+s.Patience)
		err := p.deduct(soon, order(product, "during", wait))
		cancel()
		if err := names(err, backend); err != nil {
			return fmt.Errorf("a sale with a wait of %v: %w", wait, err)
		}
	}
	return nil
}

// names returns an error unless err is a stock.Unavailable of that backend.
func names(err error, backend string) error {
	if err := is("it", err, stock.ErrUnavailable); err != nil {
		return err
	}
	f := new(fault)
	if !errors.As(err, &f) || f.Backend != backend {
		return fmt.Errorf("it names %q, want %q: %w", f.Backend, backend, err)
	}
	return nil
}

// recovers sells as soon as the strategy can again.
func (s *Subject) recovers(ctx context.Context, p peer, product int64) error {
	for began := time.Now(); ; {
		err := p.deduct(ctx, order(product, "after", s.Patience))
		switch {
		case err == nil:
			return nil
		case !errors.Is(err, stock.ErrUnavailable) || time.Since(began) > s.Patience:
			return fmt.Errorf("%v after its return: %w", time.Since(began).Round(time.Millisecond), err)
		}
		settle(ctx)
	}
}
