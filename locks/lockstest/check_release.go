package lockstest

import (
	"context"

	"oversell/locks"
)

// release gives a hold back after its caller has hung up, and once too often.
func release(ctx context.Context, s *Subject) error {
	all, err := s.peers(ctx, 2)
	if err != nil {
		return err
	}
	key, err := s.newKey(ctx)
	if err != nil {
		return err
	}
	mine, rival := all[0], all[1]
	h, err := mine.acquire(ctx, s.long(key, "owner"))
	if err != nil {
		return err
	}
	if err := h.call.cancel(ctx); err != nil {
		return err
	}
	if err := is("the context of a hold whose request was cancelled", h.lost(ctx, s.Patience), errCancelled); err != nil {
		return err
	}
	if err := rival.keptOut(ctx, key, "rival"); err != nil {
		return err // a cancelled request is no release
	}
	if err := went("release after the request was cancelled", h.releaseCancelled(ctx)); err != nil {
		return err
	}
	if err := rival.freeNow(ctx, key, "rival"); err != nil {
		return err
	}
	if err := is("a second release", h.release(ctx), locks.ErrNotHeld); err != nil {
		return err
	}
	return releaseTwice(ctx, s, mine, rival, key)
}

// releaseTwice sees that a second release does not free the next one's hold.
func releaseTwice(ctx context.Context, s *Subject, mine, rival peer, key string) error {
	first, err := mine.acquire(ctx, s.long(key, "first"))
	if err != nil {
		return err
	}
	if err := went("the first release", first.release(ctx)); err != nil {
		return err
	}
	second, err := rival.acquire(ctx, s.long(key, "second"))
	if err != nil {
		return err
	}
	if err := is("the second release, of a key that another one holds by now", first.release(ctx), locks.ErrNotHeld); err != nil {
		return err
	}
	if err := mine.keptOut(ctx, key, "third"); err != nil {
		return err
	}
	return went("the other one's release", second.release(ctx))
}
