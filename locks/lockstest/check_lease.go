package lockstest

import (
	"context"
	"fmt"
	"time"

	"oversell/api"
	"oversell/locks"
)

// expiry stops a holder for longer than its lease, and wakes it beside its
// successor.
func expiry(ctx context.Context, s *Subject) error {
	others, err := s.peers(ctx, 2)
	if err != nil {
		return err
	}
	key, err := s.newKey(ctx)
	if err != nil {
		return err
	}
	sleeper, err := s.recruit(ctx)
	if err != nil {
		return err
	}
	defer sleeper.Kill()
	h, err := sleeper.acquire(ctx, s.short(key, "sleeper"))
	if err != nil {
		return err
	}
	if err := sleeper.Stop(); err != nil {
		return err
	}
	successor, err := others[0].acquire(ctx, waiting(s.long(key, "successor"), s.Lease+s.Patience))
	if err != nil {
		return fmt.Errorf("after the lease of a holder that does not renew: %w", err)
	}
	if err := sleeper.Wake(); err != nil {
		return err
	}
	if err := wakesUp(ctx, s, h); err != nil {
		return err
	}
	if breaks(s.Card, api.ForeignUnlock) {
		return nil // its release is another check's matter
	}
	if err := is("the release of the lost lock", h.release(ctx), locks.ErrNotHeld); err != nil {
		return err
	}
	if err := others[1].keptOut(ctx, key, "third"); err != nil {
		return fmt.Errorf("after the release by somebody who lost the lock: %w", err)
	}
	if err := went("the successor", successor.check(ctx)); err != nil {
		return err
	}
	return went("the successor's release", successor.release(ctx))
}

// wakesUp sees what a hold says that was lost in its holder's sleep.
func wakesUp(ctx context.Context, s *Subject, h held) error {
	if err := is("the hold's check, at once", h.check(ctx), locks.ErrLost); err != nil {
		return err
	}
	return is("the cause of the end of the hold's context", h.lost(ctx, s.Patience), locks.ErrLost)
}

// noExpiry holds for longer than any lease.
func noExpiry(ctx context.Context, s *Subject) error {
	all, err := s.briskPair(ctx)
	if err != nil {
		return err
	}
	key, err := s.newKey(ctx)
	if err != nil {
		return err
	}
	r := s.short(key, "holder")
	r.Lease = s.Lease // it must mean nothing
	h, err := all[0].acquire(ctx, r)
	if err != nil {
		return err
	}
	if err := s.stays(ctx, h, all[1], key, 2*s.Lease); err != nil {
		return err
	}
	return went("release", h.release(ctx))
}

// renewal holds for more than three leases.
func renewal(ctx context.Context, s *Subject) error {
	all, err := s.briskPair(ctx)
	if err != nil {
		return err
	}
	key, err := s.newKey(ctx)
	if err != nil {
		return err
	}
	h, err := all[0].acquire(ctx, s.short(key, "holder"))
	if err != nil {
		return err
	}
	if err := s.stays(ctx, h, all[1], key, 3*s.Lease+s.Lease/3); err != nil {
		return err
	}
	if err := went("release", h.release(ctx)); err != nil {
		return err
	}
	return all[1].freeNow(ctx, key, "rival")
}

// stays returns an error unless the hold keeps its rival out, and is trusted,
// for that long.
func (s *Subject) stays(ctx context.Context, h held, rival peer, key string, long time.Duration) error {
	probe := time.NewTicker(s.Lease / 4)
	defer probe.Stop()
	for began := time.Now(); time.Since(began) < long; {
		select {
		case <-probe.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if err := went("the hold", h.check(ctx)); err != nil {
			return fmt.Errorf("%v after the grant: %w", time.Since(began).Round(time.Millisecond), err)
		}
		if err := rival.keptOut(ctx, key, "rival"); err != nil {
			return fmt.Errorf("%v after the grant: %w", time.Since(began).Round(time.Millisecond), err)
		}
	}
	return went("the hold", h.check(ctx))
}

// noRenewal sees the hold end, for the holder and for its rival.
func noRenewal(ctx context.Context, s *Subject) error {
	all, err := s.briskPair(ctx)
	if err != nil {
		return err
	}
	key, err := s.newKey(ctx)
	if err != nil {
		return err
	}
	h, err := all[0].acquire(ctx, s.short(key, "holder"))
	if err != nil {
		return err
	}
	if err := is("the hold, after its lease", h.lost(ctx, s.Lease+s.Patience), locks.ErrLost); err != nil {
		return err
	}
	return all[1].free(ctx, key, "rival")
}

// crash kills a waiter, and then a holder.
func crash(ctx context.Context, s *Subject) error {
	p, err := s.peer(ctx, 0)
	if err != nil {
		return err
	}
	key, err := s.newKey(ctx)
	if err != nil {
		return err
	}
	h, err := p.acquire(ctx, s.long(key, "holder"))
	if err != nil {
		return err
	}
	if err := s.dies(ctx, func(victim peer) error {
		_, err := victim.acquiring(waiting(s.short(key, "waiter"), s.Crew.Long))
		settle(ctx)
		return err
	}); err != nil {
		return err
	}
	if err := went("release", h.release(ctx)); err != nil {
		return err
	}
	if err := s.afterLease(ctx, p, key); err != nil {
		return fmt.Errorf("after the death of a waiter: %w", err)
	}
	if err := s.dies(ctx, func(victim peer) error {
		_, err := victim.acquire(ctx, s.short(key, "victim"))
		return err
	}); err != nil {
		return err
	}
	if err := s.afterLease(ctx, p, key); err != nil {
		return fmt.Errorf("after the death of the holder: %w", err)
	}
	return nil
}

// dies has a process of its own do something, and kills it.
func (s *Subject) dies(ctx context.Context, doing func(peer) error) error {
	victim, err := s.recruit(ctx)
	if err != nil {
		return err
	}
	defer victim.Kill()
	return doing(victim)
}

// afterLease returns an error unless p gets the key within a lease.
func (s *Subject) afterLease(ctx context.Context, p peer, key string) error {
	h, err := p.acquire(ctx, waiting(s.long(key, "next"), s.Lease+s.Patience))
	if err != nil {
		return err
	}
	return went("release", h.release(ctx))
}

// lossNotice wipes the lock behind its holder's back.
func lossNotice(ctx context.Context, s *Subject) error {
	all, err := s.briskPair(ctx)
	if err != nil {
		return err
	}
	key, err := s.newKey(ctx)
	if err != nil {
		return err
	}
	h, err := all[0].acquire(ctx, s.short(key, "holder"))
	if err != nil {
		return err
	}
	if err := went("the hold, before its loss", h.check(ctx)); err != nil {
		return err
	}
	if err := went("wipe the lock", all[1].clear(ctx, key)); err != nil {
		return err
	}
	if err := is("the cause of the end of the hold's context", h.lost(ctx, s.Lease+s.Patience), locks.ErrLost); err != nil {
		return err
	}
	if err := is("the release of the lost lock", h.release(ctx), locks.ErrNotHeld); err != nil {
		return err
	}
	return all[1].free(ctx, key, "next")
}
