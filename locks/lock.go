package locks

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"time"
)

// releaseTimeout bounds a release, which no longer listens to its request.
const releaseTimeout = 3 * time.Second

// Grant is what a family's backend gave, from which NewLock makes a Lock.
type Grant struct {
	Key, Owner string
	// Asked is when the request was SENT. Trust counts from here: by the time
	// the answer arrives, the backend's lease has been running for a while.
	Asked time.Time
	// Lease is how long the backend keeps the grant; 0: as long as we live.
	Lease time.Duration
	Fence int64
	// Within is the hold of which this one is a part: it can't be trusted for longer,
	// and is lost with it. nil: it stands by itself.
	Within *Lock
	// Renew makes the lease last Lease from now. ErrNotHeld: gone for good; any
	// other error: try again. nil: this grant can't be renewed.
	Renew func(context.Context) error
	// Verify asks the backend whether the grant still stands, for Check; nil: it can't
	// end without our clock or Lose saying so.
	Verify func(context.Context) error
	// Session is the connection to the stock's MySQL to which the server has granted the
	// lock: a write on it fails once the lock is gone. nil: the lock is kept otherwise.
	Session *sql.Conn
	// AdvanceFence mints a new fence for a grant that still stands, above floor where the backend
	// can; nil: it can't. ErrNotHeld: the grant is gone.
	AdvanceFence func(ctx context.Context, floor int64) (int64, error)
	// Release gives the grant back; ErrNotHeld: there was none left.
	Release func(context.Context) error
	// Again releases as well, where Release had no answer, as often as need be: GiveBack
	// says how. nil: a second release could free the next holder's lock, as a DEL does
	// that names no owner; or there is nothing to repeat.
	Again func(context.Context) error
}

// Lock is one acquisition. Release it on every way out.
type Lock struct {
	grant  Grant
	ctx    context.Context
	cancel context.CancelCauseFunc

	mu    sync.Mutex
	until time.Time // trust ends here; zero: never
	fence int64
	uses  int // acquisitions not yet released; more than one when re-entered
	after []func()

	stop   context.CancelFunc // ends the watchdog
	joined chan struct{}      // closed when it has ended
}

// NewLock starts to watch over a grant until Release. The hold's context ends
// with ctx, and with cause ErrLost once the hold can't be trusted any more.
func NewLock(ctx context.Context, g Grant) *Lock {
	h := &Lock{grant: g, fence: g.Fence, uses: 1, joined: make(chan struct{})}
	h.ctx, h.cancel = context.WithCancelCause(ctx)
	watched, stop := context.WithCancel(context.WithoutCancel(ctx))
	h.stop = stop
	if g.Within != nil {
		h.after = append(h.after, h.loseWith(g.Within))
	}
	if g.Lease <= 0 {
		close(h.joined)
		return h
	}
	h.until = trustedUntil(g.Asked, g.Lease)
	go h.watchdog(watched)
	return h
}

// loseWith loses this hold when the other one is lost, until forget is called.
func (h *Lock) loseWith(other *Lock) (forget func()) {
	stop := context.AfterFunc(other.Context(), func() {
		if cause := context.Cause(other.Context()); errors.Is(cause, ErrLost) {
			h.MarkLost(cause)
		}
	})
	return func() { stop() }
}

// trustedUntil leaves a margin for clocks that run at different speeds: a
// hundredth of the lease and 2 ms, as the Redlock description has it.
func trustedUntil(asked time.Time, lease time.Duration) time.Time {
	return asked.Add(lease - margin(lease))
}

// leaseEnd is when a lease is over that is trusted until then.
func leaseEnd(trusted time.Time, lease time.Duration) time.Time { return trusted.Add(margin(lease)) }

func margin(lease time.Duration) time.Duration { return lease/100 + 2*time.Millisecond }

// watchdog renews the lease every third of it, and ends the hold's context
// when trust has run out.
func (h *Lock) watchdog(ctx context.Context) {
	defer close(h.joined)
	renew := time.NewTimer(h.grant.Lease / 3)
	defer renew.Stop()
	if h.grant.Renew == nil {
		renew.Stop()
	}
	for {
		until := h.trusted()
		expire := time.NewTimer(time.Until(until))
		select {
		case <-ctx.Done():
			expire.Stop()
			return
		case <-expire.C:
			h.MarkLost(fmt.Errorf("no renewal in time for a lease of %v", h.grant.Lease))
			return
		case <-renew.C:
			expire.Stop()
			next, gone := h.renew(ctx, until)
			if gone != nil {
				h.MarkLost(gone)
				return
			}
			renew.Reset(next)
		}
	}
}

// renew asks once, and says when to ask next. A failed renewal is not yet a
// loss: the backend keeps the grant until the lease is over. ErrNotHeld is.
func (h *Lock) renew(ctx context.Context, until time.Time) (next time.Duration, gone error) {
	asked := time.Now()
	ctx, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	err := h.grant.Renew(ctx)
	switch {
	case errors.Is(err, ErrNotHeld):
		return 0, err
	case err != nil:
		return h.grant.Lease / 20, nil
	}
	h.mu.Lock()
	h.until = trustedUntil(asked, h.grant.Lease)
	h.mu.Unlock()
	return h.grant.Lease / 3, nil
}

func (h *Lock) trusted() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.until
}

// Key is what is held, Owner who holds it.
func (h *Lock) Key() string { return h.grant.Key }

// Owner is the task that acquired.
func (h *Lock) Owner() string { return h.grant.Owner }

// Context is for the work under the lock. It ends with cause ErrLost as soon
// as the hold can't be trusted.
func (h *Lock) Context() context.Context { return h.ctx }

// Fence is a token that rises with every grant of the key, 0 where the backend
// has none, or none was asked for.
func (h *Lock) Fence() int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.fence
}

// AdvanceFence gives the hold a fresh fence above floor, which is the row's. ErrLost: the hold
// can't be trusted any more. What was read before must be read again.
func (h *Lock) AdvanceFence(ctx context.Context, floor int64) error {
	if err := h.Verify(); err != nil {
		return err
	}
	fence, err := h.Fence(), error(nil)
	if h.grant.AdvanceFence != nil {
		fence, err = h.grant.AdvanceFence(ctx, floor)
	}
	if err != nil {
		return fmt.Errorf("raise the fence of %s: %w", h.grant.Key, err)
	}
	if fence <= floor {
		return fmt.Errorf("the row of %s has fence %d, and this lock gives %d: another strategy has sold it, "+
			"or the lock's own counter was lost; reset the stock", h.grant.Key, floor, fence)
	}
	h.mu.Lock()
	h.fence = fence
	h.mu.Unlock()
	return nil
}

// Verify looks at the clock instead of waiting for a timer: a process that was
// stopped past its lease wakes up with its timers still to fire. Where the grant
// says so, it asks the backend as well.
func (h *Lock) Verify() error {
	if h.grant.Within != nil {
		if lost := h.grant.Within.Verify(); lost != nil {
			h.cancel(lost)
		}
	}
	until := h.trusted()
	if !until.IsZero() && !time.Now().Before(until) {
		h.MarkLost(fmt.Errorf("the lease of %v is over", h.grant.Lease))
	}
	if h.grant.Verify != nil && h.ctx.Err() == nil {
		asking, cancel := CleanUp(h.ctx)
		defer cancel()
		if err := h.grant.Verify(asking); err != nil {
			h.MarkLost(err)
		}
	}
	if h.ctx.Err() != nil {
		return context.Cause(h.ctx)
	}
	return nil
}

// MarkLost ends the hold's context with cause ErrLost. Families call it when their
// backend tells of the loss; it does not release.
func (h *Lock) MarkLost(why error) {
	h.cancel(fmt.Errorf("%w: %s: %w", ErrLost, h.grant.Key, why))
}

// OnRelease runs f after the release.
func (h *Lock) OnRelease(f func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.after = append(h.after, f)
}

// enter counts one acquisition more, unless the last was released already.
func (h *Lock) enter() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.uses == 0 {
		return false
	}
	h.uses++
	return true
}

// leave counts one acquisition less and returns what is left, or -1 when all
// of them were released before.
func (h *Lock) leave() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.uses == 0 {
		return -1
	}
	h.uses--
	return h.uses
}

// giveBack releases, and again where no answer came: in the background until the lease
// is over in the backend, too, or without a lease for as long as a release may take.
func (h *Lock) giveBack(ctx context.Context) error {
	if h.grant.Again == nil {
		return h.grant.Release(ctx)
	}
	until := time.Now().Add(releaseTimeout)
	if h.grant.Lease > 0 {
		until = leaseEnd(h.trusted(), h.grant.Lease)
	}
	send := h.grant.Release
	return GiveBack(ctx, until, func(ctx context.Context) error {
		now := send
		send = h.grant.Again
		return now(ctx)
	})
}

// Release gives the lock back, also when ctx was cancelled; a hold that was
// entered again is given back by the last Release. ErrNotHeld: the lock was
// lost before, or there was nothing left to release.
func (h *Lock) Release(ctx context.Context) error {
	switch left := h.leave(); {
	case left < 0:
		return fmt.Errorf("release %s again: %w", h.grant.Key, ErrNotHeld)
	case left > 0:
		return nil
	}
	// The watchdog must have ended: a renewal after the release could make a
	// lock that nobody holds live on.
	h.stop()
	<-h.joined
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
	defer cancel()
	until := h.trusted()
	over := !until.IsZero() && !time.Now().Before(until)
	err := h.giveBack(ctx)
	if err != nil && over && !errors.Is(err, ErrNotHeld) {
		err = fmt.Errorf("%w: %w", ErrNotHeld, err) // it could not be told, and had ended by itself
	}
	h.cancel(context.Canceled)
	h.mu.Lock()
	after := h.after
	h.mu.Unlock()
	for _, f := range after {
		f()
	}
	if err != nil {
		return fmt.Errorf("release %s: %w", h.grant.Key, err)
	}
	return nil
}
