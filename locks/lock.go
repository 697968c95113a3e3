package locks

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"time"

	"oversell/stock"
)

// releaseTimeout limits the time of a release. A cancelled request does not end a release.
const releaseTimeout = 3 * time.Second

// Grant describes a lock that a backend has granted. NewLock makes a Lock of a Grant.
type Grant struct {
	Key, Owner string
	// Asked is the time when the request was SENT. The lease counts from Asked, because the
	// backend's lease has been running for a while when the answer arrives.
	Asked time.Time
	// Lease is how long the grant lasts without renewal. With 0, the Lock does not notice the end of
	// a lease: the grant has none, or the strategy is Unchecked (see api.Card).
	Lease time.Duration
	Fence int64
	// Within are the Locks that this Lock depends on. If one of them is lost, this Lock is lost.
	Within []*Lock
	// Renew restarts the lease. It returns ErrNotHeld if the backend no longer has the grant. After
	// any other error, the watchdog calls Renew again. Nil means that the grant cannot be renewed.
	Renew func(context.Context) error
	// NoRenew says that the watchdog does not call Renew. A re-entry still restarts the lease.
	NoRenew bool
	// Count stores in the backend how often the owner holds the lock, for a backend that shows this
	// number, as Redisson's hash does. It returns ErrNotHeld if the lock is gone. It may be nil.
	Count func(ctx context.Context, uses int) error
	// Verify asks the backend whether the lock is still held. Nil means that the lock cannot end
	// before its lease, except by MarkLost.
	Verify func(context.Context) error
	// Session is the MySQL connection that holds the lock, or nil. A write on this connection
	// fails once the lock is gone.
	Session *sql.Conn
	// AdvanceFence returns a new fence for a lock that is still held. The new fence is above floor if
	// possible. It returns ErrNotHeld if the lock is gone. AdvanceFence may be nil.
	AdvanceFence func(ctx context.Context, floor int64) (int64, error)
	// Release frees the lock. It returns ErrNotHeld if the lock was gone already.
	Release func(context.Context) error
	// Again repeats a Release that got no answer; see GiveBack. Again must be nil if a repeated
	// release could free the next holder's lock, like a Redis DEL that does not check the owner.
	Again func(context.Context) error
	// PassOn grants the lock to the next request of this process, in place of Release. It returns ErrNotHeld if the
	// lock was gone already. Again must also free a lock that PassOn granted without an answer. PassOn may be nil.
	PassOn func(context.Context) (Grant, error)
}

// Lock is a lock that was granted. Its holder must call Release on every code path.
type Lock struct {
	grant  Grant
	ctx    context.Context
	cancel context.CancelCauseFunc

	mu    sync.Mutex
	until time.Time // the lock is trusted until this time; the zero time means for ever
	fence int64
	uses  int // acquisitions not yet released; more than one after a re-entry
	after []func()
	lost  bool // the loss was reported

	watch func(stock.LockEvent, error) // may be nil: see stock.Watch

	stop     context.CancelFunc // ends the watchdog
	watchdog sync.WaitGroup
}

// NewLock renews the grant until Release. The Lock's context ends with ctx, or with ErrLost.
func NewLock(ctx context.Context, g Grant) *Lock {
	h := &Lock{grant: g, fence: g.Fence, uses: 1, watch: stock.WatchOf(ctx).Lock}
	h.ctx, h.cancel = context.WithCancelCause(ctx)
	watched, stop := context.WithCancel(stock.WithoutCommands(context.WithoutCancel(ctx)))
	h.stop = stop
	for _, other := range g.Within {
		h.after = append(h.after, h.loseWith(other))
	}
	if g.Lease <= 0 {
		return h
	}
	h.until = trustedUntil(g.Asked, g.Lease)
	h.checkLease() // the answer may have come after the end of the lease
	h.watchdog.Go(func() { h.keep(watched) })
	return h
}

func (h *Lock) loseWith(other *Lock) (forget func()) {
	stop := context.AfterFunc(other.Context(), func() {
		if cause := context.Cause(other.Context()); errors.Is(cause, ErrLost) {
			h.MarkLost(cause)
		}
	})
	return func() { stop() }
}

func trustedUntil(asked time.Time, lease time.Duration) time.Time {
	return asked.Add(lease - margin(lease))
}

// margin is how long before its lease ends a lock loses trust, because clocks differ in speed.
func margin(lease time.Duration) time.Duration { return lease/100 + 2*time.Millisecond }

// keep renews the lease every third of it, and marks the lock lost if no renewal succeeds.
func (h *Lock) keep(ctx context.Context) {
	renew := time.After(h.grant.Lease / 3)
	if h.grant.Renew == nil || h.grant.NoRenew {
		renew = nil
	}
	for {
		until := h.trusted()
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Until(until)):
			if h.checkLease() { // otherwise, a re-entry has restarted the lease
				return
			}
		case <-renew:
			next, gone := h.renew(ctx, until)
			if gone != nil {
				h.MarkLost(gone)
				return
			}
			renew = time.After(next)
		}
	}
}

// renew sends one renewal, and returns the pause before the next renewal. If the renewal fails, the
// backend keeps the grant until the lease ends. So only ErrNotHeld means that the lock is lost.
func (h *Lock) renew(ctx context.Context, until time.Time) (next time.Duration, gone error) {
	ctx, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	err := h.restart(ctx)
	h.report(stock.LockRenewed, err)
	switch {
	case errors.Is(err, ErrNotHeld):
		return 0, err
	case err != nil:
		return h.grant.Lease / 20, nil
	}
	return h.grant.Lease / 3, nil
}

func (h *Lock) restart(ctx context.Context) error {
	for _, other := range h.grant.Within {
		if err := other.restart(ctx); err != nil {
			return fmt.Errorf("%s: %w", other.Key(), err)
		}
	}
	if h.grant.Renew == nil {
		return nil
	}
	asked := time.Now()
	if err := h.grant.Renew(ctx); err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.until = trustedUntil(asked, h.grant.Lease)
	return nil
}

func (h *Lock) trusted() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.until
}

func (h *Lock) expired() bool {
	until := h.trusted()
	return !until.IsZero() && !time.Now().Before(until)
}

// Key returns the key that is locked.
func (h *Lock) Key() string { return h.grant.Key }

// Owner returns the owner of the request that holds the lock.
func (h *Lock) Owner() string { return h.grant.Owner }

// Context returns the context for work under the lock. It ends with ErrLost if the lock is lost.
func (h *Lock) Context() context.Context { return h.ctx }

// Fence returns the fencing token, which rises with every grant of the key. It is 0 if the
// backend has none, or the request was not Fenced.
func (h *Lock) Fence() int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.fence
}

// AdvanceFence replaces the fence by a new fence above floor, the fence in the stock row. The
// caller must then read the row again. AdvanceFence returns ErrLost if the lock is lost.
func (h *Lock) AdvanceFence(ctx context.Context, floor int64) error {
	if err := h.Verify(); err != nil {
		return err
	}
	fence, err := h.Fence(), error(nil)
	if h.grant.AdvanceFence != nil {
		fence, err = h.grant.AdvanceFence(ctx, floor)
	}
	if err != nil {
		return fmt.Errorf("advance the fence of %s: %w", h.grant.Key, err)
	}
	if fence <= floor {
		return fmt.Errorf("the row of %s has fence %d, but this lock grants only %d: another strategy has sold it, "+
			"or the lock's counter was lost; reset the stock", h.grant.Key, floor, fence)
	}
	h.mu.Lock()
	h.fence = fence
	h.mu.Unlock()
	return nil
}

// Verify returns ErrLost if the lock can no longer be trusted. It reads the clock, because timers
// run too late in a process that was paused. It also calls the Grant's Verify, if set.
func (h *Lock) Verify() error {
	for _, other := range h.grant.Within {
		if lost := other.Verify(); lost != nil {
			h.cancel(lost)
		}
	}
	h.checkLease()
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

// Confirm asks the backend whether it still has the lock, by a renewal. It returns ErrLost if a reset or an
// operator has deleted the lock. A lock that cannot be renewed is only verified.
func (h *Lock) Confirm() error {
	asking, cancel := CleanUp(stock.WithoutCommands(h.ctx))
	defer cancel()
	if err := h.restart(asking); errors.Is(err, ErrNotHeld) {
		h.MarkLost(err)
	} else if err != nil {
		return fmt.Errorf("%w: %w", stock.ErrCancelled, err)
	}
	return h.Verify()
}

// checkLease marks the lock lost if its lease is over.
func (h *Lock) checkLease() (over bool) {
	if !h.expired() {
		return false
	}
	why := fmt.Errorf("%w for a lease of %v", ErrLate, h.grant.Lease)
	if h.grant.Renew == nil || h.grant.NoRenew {
		why = fmt.Errorf("its lease of %v has ended", h.grant.Lease)
	}
	h.MarkLost(why)
	return true
}

// advance returns a function that advances this fence for another Lock with the same fence, or nil.
func (h *Lock) advance() func(context.Context, int64) (int64, error) {
	if h.grant.AdvanceFence == nil {
		return nil
	}
	return func(ctx context.Context, floor int64) (int64, error) {
		err := h.AdvanceFence(ctx, floor)
		return h.Fence(), err
	}
}

// MarkLost ends the Lock's context with ErrLost, but does not release the lock in the backend.
func (h *Lock) MarkLost(why error) {
	if !errors.Is(why, ErrLost) { // the loss of a lock within this one says enough
		why = fmt.Errorf("%w: %s: %w", ErrLost, h.grant.Key, why)
		h.reportLoss(why)
	}
	h.cancel(why)
}

// reportLoss reports the first loss of this lock. After the release, nothing can be lost any more.
func (h *Lock) reportLoss(why error) {
	h.mu.Lock()
	first := !h.lost && h.ctx.Err() == nil
	h.lost = h.lost || first
	h.mu.Unlock()
	if first {
		h.report(stock.LockLost, why)
	}
}

func (h *Lock) report(what stock.LockEvent, err error) {
	if h.watch != nil {
		h.watch(what, err)
	}
}

// OnRelease makes Release call f at its end, even if the backend did not confirm the release.
func (h *Lock) OnRelease(f func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.after = append(h.after, f)
}

// enter counts one more acquisition of the owner. It returns false if the lock is gone.
func (h *Lock) enter(ctx context.Context) bool {
	h.mu.Lock()
	if h.uses == 0 {
		h.mu.Unlock()
		return false
	}
	h.uses++
	uses := h.uses
	h.mu.Unlock()
	gone := h.store(ctx, uses)
	if h.grant.NoRenew && gone == nil {
		gone = h.restart(ctx)
	}
	if errors.Is(gone, ErrNotHeld) {
		h.leave()
		h.MarkLost(gone)
		return false
	}
	return true
}

// store sends the number of acquisitions to the backend. The Lock itself does not need that number
// there, so only ErrNotHeld matters.
func (h *Lock) store(ctx context.Context, uses int) error {
	if h.grant.Count == nil {
		return nil
	}
	ctx, cancel := CleanUp(ctx)
	defer cancel()
	return h.grant.Count(ctx, uses)
}

// leave counts one release. It returns how many releases are still due, or -1 if none was due.
func (h *Lock) leave() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.uses == 0 {
		return -1
	}
	h.uses--
	return h.uses
}

// giveBack releases the lock. Without an answer, it repeats Again, if set, until the lease ends.
func (h *Lock) giveBack(ctx context.Context) error {
	if h.grant.Again == nil {
		return h.grant.Release(ctx)
	}
	until := time.Now().Add(releaseTimeout)
	if h.grant.Lease > 0 {
		until = h.trusted().Add(margin(h.grant.Lease))
	}
	send := h.grant.Release
	return GiveBack(ctx, until, func(ctx context.Context) error {
		now := send
		send = h.grant.Again
		return now(ctx)
	})
}

// Release frees the lock, even if ctx is cancelled. After re-entries, only the last Release frees
// the lock. Release returns ErrNotHeld if the lock was lost or released before this call.
func (h *Lock) Release(ctx context.Context) error {
	switch left := h.leave(); {
	case left < 0:
		return fmt.Errorf("release %s again: %w", h.grant.Key, ErrNotHeld)
	case left > 0:
		_ = h.store(ctx, left) // the last Release reports a loss
		return nil
	}
	// DANGER: end the watchdog before the release. A renewal after the release could keep alive a lock
	// that no request holds.
	h.stop()
	h.watchdog.Wait()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
	defer cancel()
	over := h.expired()
	h.report(stock.LockReleasing, nil)
	err := h.giveBack(ctx)
	if err != nil && over && !errors.Is(err, ErrNotHeld) {
		err = fmt.Errorf("%w: %w", ErrNotHeld, err) // no answer came before the lease ended
	}
	if errors.Is(err, ErrNotHeld) && len(h.grant.Within) == 0 { // the locks within this one report it
		h.reportLoss(err)
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
