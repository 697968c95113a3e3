package lockstest_test

import (
	"context"
	"errors"
	"net/rpc"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"oversell/api"
	"oversell/locks"
	"oversell/stock"
)

// serverLock is a lock that the test's Server grants. It works correctly, or has one deliberate
// bug.
type serverLock struct {
	server  *rpc.Client
	flaw    flaw
	zombies sync.Map // the keys that have a zombie waiter
	failed  sync.Map // the keys that were not renewed once
	tokens  atomic.Int64
}

// strategy sells the stock of the test's Server under a lock, as locks.Guard sells the stock in
// MySQL.
type strategy struct {
	locks.Locker
	server *rpc.Client
	flaw   flaw
}

// newStrategy returns a strategy with the deliberate bug f.
func newStrategy(server *rpc.Client, f flaw) locks.Strategy {
	l := locks.Queue(&serverLock{server: server, flaw: f})
	switch f {
	case waitsForItself:
	case onlyThisProcess:
		l = &processLock{}
	case letsAllIn, releasesOwnNext: // a queue of this process would hide the flaw
		l = locks.Reentrant(&serverLock{server: server, flaw: f})
	default:
		l = locks.Reentrant(l)
	}
	if f == firstReleaseFails {
		l = &twice{l}
	}
	return &strategy{Locker: l, server: server, flaw: f}
}

func (s *strategy) Card() api.Card { return cardOf(s.flaw) }

func (l *serverLock) Card() api.Card { return cardOf(l.flaw) }

func (l *serverLock) call(method string, a Args) (Result, error) {
	var got Result
	if err := l.server.Call("Server."+method, a, &got); err != nil {
		return got, unavailable(err)
	}
	return got, nil
}

// unavailable returns the error that a strategy reports when its server is down. err is the cause.
func unavailable(err error) error { return &stock.Unavailable{Backend: "server", Err: err} }

func (l *serverLock) Acquire(ctx context.Context, r locks.Request) (*locks.Lock, error) {
	if r.Lease == 0 {
		r.Lease = 10 * time.Second
	}
	began, a := time.Now(), Args{Key: r.Key, Token: locks.Token(r.Owner), Lease: r.Lease, Force: l.flaw == excludesNothing || l.flaw == letsAllIn}
	switch l.flaw {
	case neverExpires:
		a.Lease = time.Hour
	case growsLease:
		a.Grow = true
	case sameTokens:
		a.Token = strconv.FormatInt(l.tokens.Add(1), 10)
	case cutsLease:
		a.Lease = max(a.Lease.Truncate(time.Second), time.Millisecond)
	case confusesNames:
		a.Key = strings.ToLower(a.Key)
	case oneKey:
		a.Key = string(oneKey)
	}
	if l.flaw == shortWait {
		r.Wait /= 2
	}
	for first := true; ; first = false {
		asked := time.Now()
		got, err := l.call("Take", a)
		if err != nil {
			return nil, err
		}
		if first {
			locks.Trace(ctx, api.Queued, r.Key, r.Owner, 0)
		}
		if l.flaw == keepsCancelledGrant {
			time.Sleep(2 * time.Millisecond)
		}
		if ctx.Err() != nil {
			return nil, l.cleanUp(ctx, r, a)
		}
		if got.OK {
			return l.lock(ctx, r, a, got, asked), nil
		}
		pause := 5 * time.Millisecond
		if l.flaw == claimsOrder && strings.HasPrefix(r.Owner, "waiter-0/") {
			pause = time.Hour
		}
		if err := locks.SleepRetry(ctx, r, began, pause); err != nil {
			if ctx.Err() != nil {
				return nil, l.cleanUp(ctx, r, a)
			}
			return nil, err
		}
	}
}

// cleanUp releases the lock that a cancelled request may have acquired.
func (l *serverLock) cleanUp(ctx context.Context, r locks.Request, a Args) error {
	switch l.flaw {
	case zombieWaiter:
		// A zombie waiter continues in the background after its cancellation. One zombie waiter for each
		// key is enough, because no two checks share a key.
		if _, there := l.zombies.LoadOrStore(r.Key, true); !there {
			later := r
			later.Wait = 20 * time.Second
			go func() { _, _ = l.Acquire(context.WithoutCancel(ctx), later) }()
		}
	case keepsCancelledGrant:
	case hidesTheCause:
		_, _ = l.call("Release", a)
		return locks.ErrNotAcquired
	default:
		_, _ = l.call("Release", a)
	}
	return locks.NotAcquired(ctx, r.Key, r.Wait)
}

func (l *serverLock) lock(ctx context.Context, r locks.Request, a Args, got Result, asked time.Time) *locks.Lock {
	g := locks.Grant{
		Key: r.Key, Owner: r.Owner, Asked: asked, Lease: a.Lease, NoRenew: r.NoRenew && l.flaw != renewsAnyway, Fence: got.Fence,
		Renew: func(context.Context) error {
			if _, stuck := l.failed.Load(a.Key); stuck {
				return nil
			}
			err := l.own("Renew", a)
			if l.flaw == keepsWatchdog && errors.Is(err, locks.ErrNotHeld) {
				l.failed.Store(a.Key, true)
			}
			if l.flaw == hidesTheLoss && errors.Is(err, locks.ErrNotHeld) {
				return nil
			}
			return err
		},
		Release: func(context.Context) error {
			if l.flaw == cancelledRelease && ctx.Err() != nil {
				return ctx.Err()
			}
			a.Force = l.flaw == releasesForeignLock || l.flaw == releasesOwnNext
			return l.own("Release", a)
		},
	}
	switch l.flaw {
	case neverRenews, deniesLease, deniesNotice:
		g.Renew = nil
	case constantFence:
		g.Fence = 1
	}
	return locks.NewLock(ctx, g)
}

func (l *serverLock) own(method string, a Args) error {
	got, err := l.call(method, a)
	if err == nil && !got.OK {
		return locks.ErrNotHeld
	}
	return err
}

// Clear deletes the grant of a key.
func (s *strategy) Clear(_ context.Context, key string) error {
	return s.server.Call("Server.Release", Args{Key: key, Force: true, Forget: s.flaw == losesFences}, &Result{})
}

func (s *strategy) Deduct(ctx context.Context, o stock.Order) (r stock.Receipt, err error) {
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
			if h.Release(ctx) != nil && s.flaw != warnsOfNothing {
				r.Warning.EN = "the lock was lost"
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
	if item.Count < o.Qty && s.flaw != oversells {
		return r, stock.ErrSoldOut
	}
	if err := locks.Work(h.Context(), o.Work); err != nil {
		return r, err
	}
	locks.Trace(h.Context(), api.Writing, key, o.Owner, h.Fence())
	return r, s.write(h, o, item.Count-o.Qty)
}

func (s *strategy) read(o stock.Order) (got Result, err error) {
	if err := s.server.Call("Server.Read", Args{Product: o.Product}, &got); err != nil {
		return got, unavailable(err)
	}
	if !got.OK {
		return got, stock.ErrUnknownProduct
	}
	return got, nil
}

func (s *strategy) write(h *locks.Lock, o stock.Order, count int) error {
	a := Args{Product: o.Product, Count: count}
	if o.Fenced && s.flaw != writesWithoutFence {
		a.Fence = h.Fence()
	}
	var got Result
	if err := s.server.Call("Server.Write", a, &got); err != nil {
		return unavailable(err)
	}
	if !got.OK {
		return stock.ErrFenced
	}
	return nil
}

// processLock is a lock in the memory of this process.
type processLock struct{ turns locks.FIFOMutex }

func (*processLock) Card() api.Card { return cardOf(onlyThisProcess) }

func (l *processLock) Acquire(ctx context.Context, r locks.Request) (*locks.Lock, error) {
	leave, err := l.turns.Take(ctx, r.Key, r.Wait)
	if err != nil {
		return nil, err
	}
	return locks.NewLock(ctx, locks.Grant{
		Key: r.Key, Owner: r.Owner, Asked: time.Now(),
		Release: func(context.Context) error { leave(); return nil },
	}), nil
}

// twice acquires a lock twice for each request. So the first release of the lock does not free it.
type twice struct{ locks.Locker }

func (l *twice) Acquire(ctx context.Context, r locks.Request) (*locks.Lock, error) {
	h, err := l.Locker.Acquire(ctx, r)
	if err != nil {
		return nil, err
	}
	return l.Locker.Acquire(ctx, locks.Request{Key: h.Key(), Owner: h.Owner()})
}
