package lockstest

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"oversell/locks"
)

// exclusionAcross has nine tasks in three processes contend for one key.
func exclusionAcross(ctx context.Context, s *Subject) error {
	all, err := s.peers(ctx, 3)
	if err != nil {
		return err
	}
	return s.contention(ctx, all, 3, 10)
}

func exclusionInside(ctx context.Context, s *Subject) error {
	p, err := s.peer(ctx, 0)
	if err != nil {
		return err
	}
	return s.contention(ctx, []peer{p}, 8, 5)
}

// contention runs tasks in each process, each for so many rounds, and compares
// the counter that they kept with what they did.
func (s *Subject) contention(ctx context.Context, all []peer, tasks, rounds int) error {
	key, err := s.newKey(ctx)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "oversell-lockstest-*")
	if err != nil {
		return fmt.Errorf("lockstest: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	calls := make([]*call, len(all))
	for i, p := range all {
		r := waiting(s.long(key, fmt.Sprintf("contender-%d", i)), s.Crew.Long)
		c := command{Do: doContend, Strategy: s.Card.ID, Request: r, Tasks: tasks, Rounds: rounds, Dir: dir}
		if calls[i], err = p.send(c); err != nil {
			return err
		}
	}
	var failed error
	for _, c := range calls { // all of them: whoever still counted would bring the folder back
		r, err := c.wait(ctx)
		if err == nil && r.err() != nil {
			err = fmt.Errorf("in %d processes with %d tasks each: %w", len(all), tasks, r.err())
		}
		failed = cmp.Or(failed, err)
	}
	if failed != nil {
		return failed
	}
	text, err := os.ReadFile(filepath.Join(dir, counterFile)) //nolint:gosec // our own folder
	if want := len(all) * tasks * rounds; err != nil || string(text) != strconv.Itoa(want) {
		return fmt.Errorf("under the lock %d were counted one by one, the counter says %s (%w)", want, text, orNil(err))
	}
	return nil
}

// noExclusionAcross shows that the process next door has a lock of its own.
func noExclusionAcross(ctx context.Context, s *Subject) error {
	key, err := s.newKey(ctx)
	if err != nil {
		return err
	}
	for n := range 2 {
		p, err := s.peer(ctx, n)
		if err != nil {
			return err
		}
		h, err := p.acquire(ctx, s.long(key, "owner"))
		if err != nil {
			return fmt.Errorf("process %d, while another one holds its own: %w", n, err)
		}
		defer func() { _ = h.release(context.WithoutCancel(ctx)) }()
	}
	return nil
}

// reEntry nests two holds of one owner, and has everybody else try in between.
func reEntry(ctx context.Context, s *Subject) error {
	all, err := s.peers(ctx, 2)
	if err != nil {
		return err
	}
	key, err := s.newKey(ctx)
	if err != nil {
		return err
	}
	mine, rival := all[0], all[1]
	outer, err := mine.acquire(ctx, s.long(key, "owner"))
	if err != nil {
		return err
	}
	inner, err := mine.acquire(ctx, s.long(key, "owner"))
	if err != nil {
		return fmt.Errorf("the same owner again, with a wait of 0: %w", err)
	}
	keptOut := func() error {
		if err := mine.keptOut(ctx, key, "another-owner"); err != nil {
			return fmt.Errorf("another owner in the same process: %w", err)
		}
		return rival.keptOut(ctx, key, "rival")
	}
	if err := keptOut(); err != nil {
		return err
	}
	if err := went("the inner release", inner.release(ctx)); err != nil {
		return err
	}
	if err := keptOut(); err != nil {
		return fmt.Errorf("after the inner release: %w", err)
	}
	if err := went("the hold after the inner release", outer.check(ctx)); err != nil {
		return err
	}
	if err := went("the outer release", outer.release(ctx)); err != nil {
		return err
	}
	if err := is("the same hold once more", inner.release(ctx), locks.ErrNotHeld); err != nil {
		return err
	}
	return rival.freeNow(ctx, key, "rival")
}

func noReEntry(ctx context.Context, s *Subject) error {
	p, err := s.peer(ctx, 0)
	if err != nil {
		return err
	}
	key, err := s.newKey(ctx)
	if err != nil {
		return err
	}
	h, err := p.acquire(ctx, s.long(key, "owner"))
	if err != nil {
		return err
	}
	if err := p.keptOut(ctx, key, "owner"); err != nil {
		return fmt.Errorf("the same owner again: %w", err)
	}
	return went("release", h.release(ctx))
}

// fence collects the fences of grants to three processes in turn.
func fence(ctx context.Context, s *Subject) error {
	all, err := s.peers(ctx, 3)
	if err != nil {
		return err
	}
	key, err := s.newKey(ctx)
	if err != nil {
		return err
	}
	last := int64(0)
	for i := range 9 {
		r := waiting(s.long(key, fmt.Sprintf("owner-%d", i)), s.Patience)
		r.Fenced = true
		h, err := all[i%3].acquire(ctx, r)
		if err != nil {
			return err
		}
		if h.fence <= last {
			return fmt.Errorf("grant %d has fence %d, the one before it had %d", i+1, h.fence, last)
		}
		last = h.fence
		if err := went("release", h.release(ctx)); err != nil {
			return err
		}
	}
	return nil
}

func noFence(ctx context.Context, s *Subject) error {
	p, err := s.peer(ctx, 0)
	if err != nil {
		return err
	}
	key, err := s.newKey(ctx)
	if err != nil {
		return err
	}
	r := s.long(key, "owner")
	r.Fenced = true
	h, err := p.acquire(ctx, r)
	if err != nil {
		return err
	}
	if h.fence != 0 {
		return fmt.Errorf("it carries fence %d, and the card claims none", h.fence)
	}
	return went("release", h.release(ctx))
}
