package lockstest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"oversell/locks"
	"oversell/stock"
)

// timeOut waits for a held key for a moment, and for longer than a lease lasts:
// the wait and the lease are two clocks.
func timeOut(ctx context.Context, s *Subject) error {
	all, err := s.briskPair(ctx)
	if err != nil {
		return err
	}
	key, err := s.newKey(ctx)
	if err != nil {
		return err
	}
	mine, rival := all[0], all[1]
	if err := rival.freeNow(ctx, key, "first"); err != nil {
		return fmt.Errorf("a wait of 0 on a free key: %w", err)
	}
	h, err := mine.acquire(ctx, s.long(key, "holder"))
	if err != nil {
		return err
	}
	for _, wait := range []time.Duration{0, 300 * time.Millisecond, s.Lease + s.Lease/3} {
		for _, p := range []peer{mine, rival} {
			if err := s.givesUp(ctx, p, key, wait); err != nil {
				return err
			}
		}
	}
	if err := went("the holder, after all that", h.check(ctx)); err != nil {
		return err
	}
	if err := went("release", h.release(ctx)); err != nil {
		return err
	}
	return rival.freeNow(ctx, key, "next")
}

// givesUp returns an error unless p waits for that long, and no longer. Where the
// backend was away for a moment it is asked again, as in acquire.
func (s *Subject) givesUp(ctx context.Context, p peer, key string, wait time.Duration) error {
	what := fmt.Sprintf("a wait of %v for a held key", wait)
	for began := time.Now(); ; settle(ctx) {
		c, err := p.acquiring(waiting(s.long(key, "waiter"), wait))
		if err != nil {
			return err
		}
		r, err := c.wait(ctx)
		if err != nil {
			return err
		}
		err = is(what, r.err(), locks.ErrNotAcquired)
		switch {
		case errors.Is(r.err(), stock.ErrUnavailable) && time.Since(began) < s.Patience:
			continue
		case err != nil:
			return err
		case r.Took < wait:
			return fmt.Errorf("%s was over after %v", what, r.Took)
		case r.Took > wait+s.Patience:
			return fmt.Errorf("%s took %v", what, r.Took)
		}
		return nil
	}
}

// cancellation cancels waiters in the holder's process and in another one, and
// sees whether somebody else gets the key as if they had never been.
func cancellation(ctx context.Context, s *Subject) error {
	all, err := s.peers(ctx, 3)
	if err != nil {
		return err
	}
	key, err := s.newKey(ctx)
	if err != nil {
		return err
	}
	h, err := all[0].acquire(ctx, s.long(key, "holder"))
	if err != nil {
		return err
	}
	for i, p := range all[:2] {
		if err := s.givesWay(ctx, p, key, fmt.Sprintf("waiter-%d", i)); err != nil {
			return err
		}
	}
	next, err := all[2].acquiring(waiting(s.long(key, "next"), s.Patience))
	if err != nil {
		return err
	}
	settle(ctx)
	if err := went("release", h.release(ctx)); err != nil {
		return err
	}
	got, err := all[2].granted(ctx, next)
	if err != nil {
		return fmt.Errorf("the next in the queue, after the holder's release: %w", err)
	}
	if err := went("its release", got.release(ctx)); err != nil {
		return err
	}
	settle(ctx) // whatever still runs for those who went away has the lock by now
	return s.deadOnArrival(ctx, all[1], all[0], key)
}

// givesWay cancels a waiter: it ends soon, and says why.
func (s *Subject) givesWay(ctx context.Context, p peer, key, owner string) error {
	waiter, err := p.acquiring(waiting(s.long(key, owner), s.Crew.Long))
	if err != nil {
		return err
	}
	settle(ctx)
	if err := waiter.cancel(ctx); err != nil {
		return err
	}
	soon, cancel := context.WithTimeout(ctx, s.Patience)
	defer cancel()
	r, err := waiter.wait(soon)
	if err != nil {
		return fmt.Errorf("a waiter whose caller went away: %w", err)
	}
	return is("a waiter whose caller went away", r.err(), locks.ErrNotAcquired, errCancelled)
}

// deadOnArrival asks for a free key for a caller that has gone already.
func (s *Subject) deadOnArrival(ctx context.Context, p, rival peer, key string) error {
	r := waiting(s.long(key, "too-late"), s.Patience)
	answer, err := p.do(ctx, command{Do: doAcquire, Strategy: s.Card.ID, Request: r, Cancelled: true})
	if err != nil {
		return err
	}
	if err := is("a caller that had gone before it asked", answer.err(), locks.ErrNotAcquired, errCancelled); err != nil {
		return err
	}
	return rival.free(ctx, key, "after-it")
}

// cleanUp cuts acquisitions off in two processes at once, on a free key and on a
// held one. What stays behind of one of them has a long lease and blocks them all.
func cleanUp(ctx context.Context, s *Subject) error {
	all, err := s.peers(ctx, 3)
	if err != nil {
		return err
	}
	key, err := s.newKey(ctx)
	if err != nil {
		return err
	}
	if err := s.churned(ctx, all[:2], key, 60, 1); err != nil {
		return fmt.Errorf("on a free key: %w", err)
	}
	settle(ctx) // as in cancellation
	if err := all[2].free(ctx, key, "after-it"); err != nil {
		return err
	}
	h, err := all[2].acquire(ctx, s.long(key, "holder"))
	if err != nil {
		return err
	}
	if err := s.churned(ctx, all[:2], key, 30, 2); err != nil {
		return fmt.Errorf("on a held key: %w", err)
	}
	if err := went("the holder's release", h.release(ctx)); err != nil {
		return err
	}
	settle(ctx)
	return all[2].free(ctx, key, "after-it")
}

// churnWithin is the longest life of an acquisition that is cut off.
const churnWithin = 5 * time.Millisecond

func (s *Subject) churned(ctx context.Context, all []peer, key string, rounds int, seed uint64) error {
	calls := make([]*call, len(all))
	for i, p := range all {
		c := command{
			Do: doChurn, Strategy: s.Card.ID, Request: waiting(s.long(key, fmt.Sprintf("cut-off-%d", i)), s.Crew.Long),
			Rounds: rounds, Wait: churnWithin, Seed: seed*10 + uint64(i),
		}
		sent, err := p.send(c)
		if err != nil {
			return err
		}
		calls[i] = sent
	}
	for _, c := range calls {
		r, err := c.wait(ctx)
		if err != nil {
			return err
		}
		if err := r.err(); err != nil {
			return err
		}
	}
	return nil
}
