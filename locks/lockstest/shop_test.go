package lockstest_test

import (
	"context"
	"errors"
	"fmt"
	"net/rpc"
	"sync"
	"sync/atomic"
	"time"

	"oversell/api"
	"oversell/locks"
	"oversell/stock"
)

// deskLock is a locker at the desk. Sound, or with one flaw.
type deskLock struct {
	desk   *rpc.Client
	flaw   flaw
	ghosts sync.Map // the keys that are haunted
}

// shop sells under a locker, from the desk's shelf. It is what locks.Guard is
// for MySQL's.
type shop struct {
	locks.Locker
	desk *rpc.Client
	flaw flaw
	away atomic.Bool
}

// newShop returns the strategy with that flaw.
func newShop(desk *rpc.Client, f flaw) locks.Strategy {
	l := locks.Queue(&deskLock{desk: desk, flaw: f})
	switch f {
	case waitsForItself:
	case onlyNextDoor, confessesPolls:
		l = &deskless{}
	default:
		l = locks.Reentrant(l)
	}
	if f == holdsTwice {
		l = &twice{l}
	}
	return &shop{Locker: l, desk: desk, flaw: f}
}

func (s *shop) Card() api.Card { return cardOf(s.flaw) }

func (l *deskLock) Card() api.Card { return cardOf(l.flaw) }

func (l *deskLock) ask(what string, a Ask) (Answer, error) {
	var got Answer
	if err := l.desk.Call("Desk."+what, a, &got); err != nil {
		return got, closed(l.flaw, err)
	}
	return got, nil
}

// closed is the error while the desk is closed.
func closed(f flaw, err error) error {
	switch f {
	case blamesAnother:
		return &stock.Unavailable{Backend: "the weather", Err: err}
	case mumblesOutages:
		return fmt.Errorf("something is wrong: %w", err)
	}
	return &stock.Unavailable{Backend: "desk", Err: err}
}

func (l *deskLock) Acquire(ctx context.Context, r locks.Request) (*locks.Lock, error) {
	if r.Lease == 0 {
		r.Lease = 10 * time.Second
	}
	began, a := time.Now(), Ask{Key: r.Key, Token: locks.Token(r.Owner), Lease: r.Lease, Anyway: l.flaw == letsEverybodyIn}
	a.InLine = l.flaw == keepsDeadWaiters
	if l.flaw == neverExpires {
		a.Lease = time.Hour
	}
	if l.flaw == hurries {
		r.Wait /= 2
	}
	for first := true; ; first = false {
		asked := time.Now()
		got, err := l.ask("Take", a)
		if err != nil {
			return nil, err
		}
		if first {
			locks.Trace(ctx, api.Queued, r.Key, r.Owner, 0)
		}
		if l.flaw == forgetsItsGrant {
			time.Sleep(2 * time.Millisecond)
		}
		if ctx.Err() != nil {
			return nil, l.gone(ctx, r, a)
		}
		if got.OK {
			return l.hold(ctx, r, a, got, asked), nil
		}
		pause := 5 * time.Millisecond
		if l.flaw == boastsOfOrder && r.Owner == "waiter-0" {
			pause = time.Hour
		}
		if err := locks.SleepRetry(ctx, r, began, pause); err != nil {
			if ctx.Err() != nil {
				return nil, l.gone(ctx, r, a)
			}
			_, _ = l.ask("Release", a) // leaves the line
			return nil, err
		}
	}
}

// gone cleans up after a caller that went away.
func (l *deskLock) gone(ctx context.Context, r locks.Request, a Ask) error {
	switch l.flaw {
	case haunts:
		// One for each key is enough to be seen, and no check takes another one's.
		if _, there := l.ghosts.LoadOrStore(r.Key, true); !there {
			later := r
			later.Wait = 20 * time.Second
			go func() { _, _ = l.Acquire(context.WithoutCancel(ctx), later) }()
		}
	case forgetsItsGrant:
	case hidesTheCause:
		_, _ = l.ask("Release", a)
		return locks.ErrNotAcquired
	default:
		_, _ = l.ask("Release", a)
	}
	return locks.NotAcquired(ctx, r.Key, r.Wait)
}

func (l *deskLock) hold(ctx context.Context, r locks.Request, a Ask, got Answer, asked time.Time) *locks.Lock {
	g := locks.Grant{
		Key: r.Key, Owner: r.Owner, Asked: asked, Lease: a.Lease, Fence: got.Fence,
		Renew: func(context.Context) error {
			err := l.held("Renew", a)
			if l.flaw == keepsTheLossQuiet && errors.Is(err, locks.ErrNotHeld) {
				return nil
			}
			return err
		},
		Release: func(context.Context) error {
			if l.flaw == releasesForTheLiving && ctx.Err() != nil {
				return ctx.Err()
			}
			a.Anyway = l.flaw == freesStrangers
			return l.held("Release", a)
		},
	}
	switch l.flaw {
	case neverRenews, deniesLease:
		g.Renew = nil
	case fenceStandsStill:
		g.Fence = 1
	}
	return locks.NewLock(ctx, g)
}

func (l *deskLock) held(what string, a Ask) error {
	got, err := l.ask(what, a)
	if err == nil && !got.OK {
		return locks.ErrNotHeld
	}
	return err
}

// Clear wipes the grant of a key.
func (s *shop) Clear(_ context.Context, key string) error {
	return s.desk.Call("Desk.Release", Ask{Key: key, Anyway: true, Forget: s.flaw == forgetsItsFences}, &Answer{})
}

func (s *shop) Deduct(ctx context.Context, o stock.Order) (r stock.Receipt, err error) {
	early, err := s.read(o)
	if err != nil {
		return r, err
	}
	key := api.Key(o.Product)
	h, err := s.Acquire(ctx, locks.Request{Key: key, Owner: o.Owner, Wait: o.Wait, Lease: o.Lease, Fenced: o.Fenced})
	if err != nil {
		return r, err
	}
	if s.flaw != forgetsToRelease {
		defer func() {
			r.Fence = h.Fence()
			if h.Release(ctx) != nil && s.flaw != keepsQuietAfterAll {
				r.Warning = "the lock was lost"
			}
		}()
	}
	item, err := s.read(o)
	if err != nil {
		return r, err
	}
	if s.flaw == readsEarly {
		item = early
	}
	if s.flaw == releasesEarly {
		_ = h.Release(ctx)
	}
	locks.Trace(h.Context(), api.Read, key, o.Owner, h.Fence())
	if item.Count < o.Qty && s.flaw != sellsAir {
		return r, stock.ErrSoldOut
	}
	if err := locks.Work(h.Context(), o.Work); err != nil {
		return r, err
	}
	locks.Trace(h.Context(), api.Writing, key, o.Owner, h.Fence())
	return r, s.write(h, o, item.Count-o.Qty)
}

func (s *shop) read(o stock.Order) (got Answer, err error) {
	if s.away.Load() {
		return got, closed(s.flaw, errDown)
	}
	if err := s.desk.Call("Desk.Read", Ask{Product: o.Product}, &got); err != nil {
		s.away.Store(s.flaw == staysAway)
		return got, closed(s.flaw, err)
	}
	if !got.OK {
		return got, stock.ErrUnknownProduct
	}
	return got, nil
}

func (s *shop) write(h *locks.Lock, o stock.Order, count int) error {
	a := Ask{Product: o.Product, Count: count}
	if o.Fenced && s.flaw != writesWithoutFence {
		a.Fence = h.Fence()
	}
	var got Answer
	if err := s.desk.Call("Desk.Write", a, &got); err != nil {
		return closed(s.flaw, err)
	}
	if !got.OK {
		return stock.ErrFenced
	}
	return nil
}

// deskless is a lock of this process.
type deskless struct{ turns locks.FIFOMutex }

func (*deskless) Card() api.Card { return cardOf(onlyNextDoor) }

func (l *deskless) Acquire(ctx context.Context, r locks.Request) (*locks.Lock, error) {
	leave, err := l.turns.Take(ctx, r.Key, r.Wait)
	if err != nil {
		return nil, err
	}
	return locks.NewLock(ctx, locks.Grant{
		Key: r.Key, Owner: r.Owner, Asked: time.Now(),
		Release: func(context.Context) error { leave(); return nil },
	}), nil
}

// twice enters every hold once more, and tells nobody.
type twice struct{ locks.Locker }

func (l *twice) Acquire(ctx context.Context, r locks.Request) (*locks.Lock, error) {
	h, err := l.Locker.Acquire(ctx, r)
	if err != nil {
		return nil, err
	}
	return l.Locker.Acquire(ctx, locks.Request{Key: h.Key(), Owner: h.Owner()})
}
