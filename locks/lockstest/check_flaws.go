package lockstest

import (
	"context"
	"fmt"
	"time"

	"oversell/locks"
	"oversell/stock"
)

// foreignUnlockSafe has a holder release after its lease, when another one holds.
func foreignUnlockSafe(ctx context.Context, s *Subject) error {
	return s.foreignUnlock(ctx, func(third peer, key string) error {
		if err := third.keptOut(ctx, key, "third"); err != nil {
			return fmt.Errorf("after the release by somebody whose lease was over: %w", err)
		}
		return nil
	})
}

func foreignUnlockSeen(ctx context.Context, s *Subject) error {
	return s.foreignUnlock(ctx, func(third peer, key string) error {
		if err := third.freeNow(ctx, key, "third"); err != nil {
			return fmt.Errorf("the stale release has freed nobody's lock: %w", err)
		}
		return nil
	})
}

// foreignUnlock leaves the key with a successor, after the sleeper's release. Both
// are in processes of their own: what each of them counts begins at the same number.
func (s *Subject) foreignUnlock(ctx context.Context, judge func(third peer, key string) error) error {
	product, err := s.NewProduct(ctx, 10)
	if err != nil {
		return err
	}
	key := locks.Key(product)
	sleeper, err := s.recruit(ctx)
	if err != nil {
		return err
	}
	defer sleeper.Kill()
	other, err := s.Crew.Recruit(ctx, s.Crew.Long)
	if err != nil {
		return err
	}
	defer other.Kill()
	third, err := s.peer(ctx, 0)
	if err != nil {
		return err
	}
	release, err := s.oversleeps(ctx, sleeper, product)
	if err != nil {
		return err
	}
	successor, err := peer{other, s}.acquire(ctx, waiting(s.long(key, "successor"), s.Lease+s.Patience))
	if err != nil {
		return fmt.Errorf("after the sleeper's lease: %w", err)
	}
	if err := release(); err != nil {
		return err
	}
	if err := judge(third, key); err != nil {
		return err
	}
	_ = successor.release(ctx) // it may have lost the lock
	return nil
}

// oversleeps takes the key for longer than its lease, and returns how to go on to
// the release: from the step that the card names, or from a stop.
func (s *Subject) oversleeps(ctx context.Context, sleeper peer, product int64) (release func() error, err error) {
	if at := breakStep(s.Card, locks.ForeignUnlock); at != "" {
		sale, err := sleeper.deducting(ctx, s.sale(product, "sleeper", false), at)
		return func() error {
			if err := sale.resume(ctx); err != nil {
				return err
			}
			_, err := sale.sale(ctx)
			return err
		}, err
	}
	h, err := sleeper.acquire(ctx, s.short(locks.Key(product), "sleeper"))
	if err != nil {
		return nil, err
	}
	return func() error {
		if err := sleeper.Wake(); err != nil {
			return err
		}
		// Refused, or without an answer from a connection that broke meanwhile:
		// what counts is whom it leaves without a lock.
		_ = h.release(ctx)
		return nil
	}, sleeper.Stop()
}

// breakStep returns the step at which the hazard breaks the strategy, if its card names one.
func breakStep(c locks.Card, h locks.Hazard) locks.Step {
	for _, b := range c.Breaks {
		if b.Hazard == h && b.At != "" {
			return b.At
		}
	}
	return ""
}

// deadWaiter has three want one key, in the order in which they came: a holder,
// and two waiters in other processes. The first of these dies.
func (s *Subject) deadWaiter(ctx context.Context, judge func(third *call, who peer, holder held) error) error {
	key, err := s.newKey(ctx)
	if err != nil {
		return err
	}
	all, err := s.peers(ctx, 2)
	if err != nil {
		return err
	}
	holder, err := all[0].acquire(ctx, s.long(key, "holder"))
	if err != nil {
		return err
	}
	second, err := s.recruit(ctx)
	if err != nil {
		return err
	}
	defer second.Kill()
	if _, err := s.queued(ctx, second, waiting(s.short(key, "second"), s.Crew.Long)); err != nil {
		return err
	}
	third, err := s.queued(ctx, all[1], waiting(s.long(key, "third"), s.Crew.Long))
	if err != nil {
		return err
	}
	second.Kill()
	return judge(third, all[1], holder)
}

func deadWaiterSafe(ctx context.Context, s *Subject) error {
	return s.deadWaiter(ctx, func(third *call, who peer, holder held) error {
		soon, cancel := context.WithTimeout(ctx, 2*s.Lease)
		defer cancel()
		if h, err := who.granted(soon, third); err == nil || soon.Err() == nil {
			return fmt.Errorf("the third, when the second in the queue had died and the first still held: granted with fence %d (%w)", h.fence, orNil(err))
		}
		if err := went("the holder's release", holder.release(ctx)); err != nil {
			return err
		}
		h, err := who.granted(ctx, third)
		if err != nil {
			return fmt.Errorf("the third, after the holder's release: %w", err)
		}
		return went("its release", h.release(ctx))
	})
}

func deadWaiterSeen(ctx context.Context, s *Subject) error {
	return s.deadWaiter(ctx, func(third *call, who peer, holder held) error {
		soon, cancel := context.WithTimeout(ctx, s.Lease+s.Patience)
		defer cancel()
		h, err := who.granted(soon, third)
		if err != nil {
			return fmt.Errorf("the third, when the second in the queue had died and the first still held: %w", err)
		}
		if err := went("the holder, beside the third", holder.check(ctx)); err != nil {
			return err
		}
		_, _ = holder.release(ctx), h.release(ctx)
		return nil
	})
}

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
	c, err := p.send(command{Do: doAcquire, Strategy: s.Card.ID, Request: r, Step: locks.Queued})
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
