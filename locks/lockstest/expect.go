package lockstest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"oversell/locks"
)

// is returns an error unless got is every one of want.
func is(what string, got error, want ...error) error {
	for _, w := range want {
		if !errors.Is(got, w) {
			return fmt.Errorf("%s: want %q, got %v", what, w, orNil(got)) //nolint:errorlint // what was got is not what is reported
		}
	}
	return nil
}

// went returns an error unless what was done without one.
func went(what string, err error) error {
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// orNil says "no error" for a nil.
func orNil(err error) error {
	if err == nil {
		return errors.New("no error")
	}
	return err
}

// free returns an error unless p gets the key, be it after a while. It is given
// back. The wait is Patience and the lease of what blocks p is longer, so what
// was left behind on it is seen.
func (p peer) free(ctx context.Context, key, owner string) error {
	h, err := p.acquire(ctx, waiting(p.subject.long(key, owner), p.subject.Patience))
	if err != nil {
		return fmt.Errorf("the key must be free: %w", err)
	}
	return went("release it again", h.release(ctx))
}

// freeNow is free without a wait: one try.
func (p peer) freeNow(ctx context.Context, key, owner string) error {
	h, err := p.acquire(ctx, p.subject.long(key, owner))
	if err != nil {
		return fmt.Errorf("the key must be free at once: %w", err)
	}
	return went("release it again", h.release(ctx))
}

// keptOut returns an error unless one try of p is refused.
func (p peer) keptOut(ctx context.Context, key, owner string) error {
	_, err := p.acquire(ctx, p.subject.long(key, owner))
	return is("one try for the key that somebody holds", err, locks.ErrNotAcquired)
}

// settle lets a command that was sent come to where it waits. Nothing depends on
// it: a check whose waiter has not begun to wait yet is passed too easily.
func settle(ctx context.Context) {
	select {
	case <-time.After(100 * time.Millisecond):
	case <-ctx.Done():
	}
}
