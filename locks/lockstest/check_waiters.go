package lockstest

import (
	"context"
	"fmt"
	"time"

	"oversell/api"
	"oversell/locks"
	"oversell/stock"
)

// inOrder has thirty wait that came one after the other, in three processes, and
// compares the order of the grants.
func inOrder(ctx context.Context, s *Subject) error {
	key, err := s.newKey(ctx)
	if err != nil {
		return err
	}
	all, err := s.peers(ctx, 3)
	if err != nil {
		return err
	}
	const waiters = 30
	h, err := all[0].acquire(ctx, s.long(key, "holder"))
	if err != nil {
		return err
	}
	calls := make([]*call, waiters)
	for i := range calls {
		r := waiting(s.long(key, fmt.Sprintf("waiter-%d", i)), s.Crew.Long)
		if calls[i], err = s.queued(ctx, all[seat(i)], r); err != nil {
			return fmt.Errorf("waiter %d: %w", i, err)
		}
	}
	for i, c := range calls {
		for later, other := range calls[i+1:] {
			select {
			case r := <-other.answer:
				return fmt.Errorf("waiter %d was answered before waiter %d: %w", i+1+later, i, orNil(r.err()))
			default:
			}
		}
		if err := went("release", h.release(ctx)); err != nil {
			return err
		}
		soon, cancel := context.WithTimeout(ctx, s.Patience)
		h, err = all[seat(i)].granted(soon, c)
		cancel()
		if err != nil {
			return fmt.Errorf("waiter %d of %d, when all before it had their turn: %w", i+1, waiters, err)
		}
	}
	return went("the last release", h.release(ctx))
}

// seat has three of one process arrive before three of the next.
func seat(i int) int { return i / 3 % 3 }

// queued asks, and returns when the request has its place in the queue.
func (s *Subject) queued(ctx context.Context, p peer, r locks.Request) (*call, error) {
	c, err := p.send(command{Do: doAcquire, Strategy: s.Card.ID, Request: r, Step: api.Queued})
	if err != nil {
		return nil, err
	}
	err = c.untilPaused(ctx)
	return c, err
}

// What the lock's backend is asked while nothing happens but waiting.
const (
	polled       = 30 // more than that is polling
	pollsWaiters = 6
)

func quiet(ctx context.Context, s *Subject) error {
	return s.waitsFor(ctx, func(asked func() (int64, error)) error {
		select {
		case <-time.After(2 * time.Second):
		case <-ctx.Done():
		}
		if n, err := asked(); err != nil || n > polled {
			return fmt.Errorf("%d waiters, and the backend was asked %d times in 2 s (%w)", pollsWaiters, n, orNil(err))
		}
		return nil
	})
}

func polls(ctx context.Context, s *Subject) error {
	return s.waitsFor(ctx, func(asked func() (int64, error)) error {
		for began := time.Now(); time.Since(began) < s.Patience; settle(ctx) {
			if n, err := asked(); err != nil || n > polled {
				return err
			}
		}
		n, err := asked()
		return fmt.Errorf("%d waiters, and the backend was asked only %d times in %v (%w)", pollsWaiters, n, s.Patience, orNil(err))
	})
}

// waitsFor has waiters wait in two processes, and counts what their backend is
// asked from then on.
func (s *Subject) waitsFor(ctx context.Context, judge func(asked func() (int64, error)) error) error {
	backend := s.Card.Backends[len(s.Card.Backends)-1]
	count, ok := s.Operations[backend]
	if !ok {
		return fmt.Errorf("lockstest: the subject has no Operations for %s, which the card names", backend)
	}
	key, err := s.newKey(ctx)
	if err != nil {
		return err
	}
	all, err := s.peers(ctx, 2)
	if err != nil {
		return err
	}
	h, err := all[0].acquire(ctx, s.long(key, "holder"))
	if err != nil {
		return err
	}
	for i := range pollsWaiters {
		c, err := all[i%2].acquiring(waiting(s.long(key, fmt.Sprintf("waiter-%d", i)), s.Crew.Long))
		if err != nil {
			return err
		}
		defer func() { _ = c.cancel(context.WithoutCancel(ctx)) }()
	}
	for range 10 {
		settle(ctx)
	}
	before, err := count(ctx)
	if err != nil {
		return err
	}
	if err := judge(func() (int64, error) {
		now, err := count(ctx)
		return now - before, err
	}); err != nil {
		return err
	}
	return went("release", h.release(ctx))
}

// left counts the product where the strategy keeps it.
func (s *Subject) left(ctx context.Context, product int64) (int, error) {
	p, err := s.peer(ctx, 0)
	if err != nil {
		return 0, err
	}
	r, err := p.do(ctx, command{Do: doCount, Strategy: s.Card.ID, Order: stock.Order{Product: product}})
	switch {
	case err != nil:
		return 0, err
	case r.err() != nil:
		return 0, r.err()
	case r.Kept:
		return r.Receipt.Remaining, nil
	}
	return s.Count(ctx, product)
}
