package zklock

import (
	"context"
	"errors"
	"net"
	"slices"
	"time"

	"github.com/go-zookeeper/zk"

	"oversell/locks"
	"oversell/stock"
)

// retry calls try again if its node was lost during the wait (the session ended, the server died,
// or a reset deleted the node). It returns only errors that a Locker may return.
func retry[T any](ctx context.Context, s *Session, r locks.Request, try func(began time.Time) (T, error)) (T, error) {
	for began := time.Now(); ; {
		value, err := try(began)
		again := errors.Is(err, errNodeGone) || isNoNode(err) || s.serverDied(err, r, began)
		if again && ctx.Err() == nil {
			if err = locks.SleepRetry(ctx, r, began, 50*time.Millisecond); err == nil {
				continue
			}
		}
		return value, named(ctx, r, err)
	}
}

// serverDied reports whether err means that a server died and another one may answer soon.
func (s *Session) serverDied(err error, r locks.Request, began time.Time) bool {
	alone := errors.Is(err, zk.ErrNoServer) && !s.ensemble
	died := errors.Is(err, zk.ErrConnectionClosed) || unsent(err) && !alone
	return died && time.Since(began) < min(r.Wait, s.Timeout())
}

// unsent reports whether err means that the server never had the request: the driver was not connected, or could not
// write all of it. It returns the error of a write only for the request that it wrote.
func unsent(err error) bool {
	var broken *net.OpError
	return errors.Is(err, zk.ErrNoServer) || errors.As(err, &broken) && broken.Op == "write"
}

// known reports whether the outcome of a write is known: the server has answered it, or never had it.
func known(err error) bool {
	return unsent(err) || isAny(err, nil, zk.ErrNoNode, zk.ErrNodeExists, zk.ErrBadVersion, zk.ErrNotEmpty, zk.ErrNoAuth, zk.ErrInvalidACL)
}

// named translates an error of the driver to an error that callers know, mostly stock.Unavailable.
func named(ctx context.Context, r locks.Request, err error) error {
	if isAny(err, nil, locks.ErrNotAcquired, locks.ErrMismatch, locks.ErrUpgrade, locks.ErrFull, errUnknown, zk.ErrBadVersion) {
		return err
	}
	if ctx.Err() != nil {
		return locks.NotAcquired(ctx, r.Key, r.Wait)
	}
	return &stock.Unavailable{Backend: "zookeeper", Err: err}
}

func isAny(err error, targets ...error) bool {
	return slices.ContainsFunc(targets, func(target error) bool { return errors.Is(err, target) })
}

var errUnknown = errors.New("no answer from ZooKeeper: the write may have been carried out; read the value before you repeat it")

// bound's context ends one session time-out after the wait, lest a late answer look like an outage.
func (s *Session) bound(ctx context.Context, r locks.Request, began time.Time) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, max(0, r.Wait-time.Since(began))+s.Timeout())
}

// pause returns when the watch fires, the connection breaks, or r.Wait has passed since began. After
// r.Wait the caller tries once more. If that fails, its next pause returns ErrNotAcquired.
func pause(ctx, alive context.Context, r locks.Request, began time.Time, changed <-chan zk.Event) (event zk.Event, err error) {
	left := r.Wait - time.Since(began)
	if left <= 0 || ctx.Err() != nil {
		return event, locks.NotAcquired(ctx, r.Key, r.Wait)
	}
	select {
	case event = <-changed:
	case <-alive.Done():
	case <-time.After(left):
	case <-ctx.Done():
		return event, locks.NotAcquired(ctx, r.Key, r.Wait)
	}
	return event, nil
}

// makeEphemeral creates a node and returns its path. If no answer comes, takeBack deletes the node.
func (s *Session) makeEphemeral(ctx context.Context, path string, data []byte, flags int32, takeBack func(context.Context) error) (string, error) {
	// The login comes first: if it fails or ctx ends, nothing was sent that must be taken back.
	if _, err := do(ctx, s, func() (bool, error) { return true, nil }); err != nil {
		return "", err
	}
	answered := make(chan struct{})
	made, err := do(ctx, s, func() (string, error) {
		defer close(answered)
		return s.create(ctx, path, data, zk.FlagEphemeral|flags)
	})
	if known(err) || errors.Is(err, zk.ErrClosing) { // then the node ends with the session
		return made, err
	}
	_ = s.giveBack(ctx, func(ctx context.Context) error {
		select {
		case <-answered: // before the answer, the driver may still send the request
			return takeBack(ctx)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	})
	return "", err
}

// giveBack calls remove to delete a node. Without an answer, it repeats the call in the background
// until the session ends. It returns ErrNotHeld if the node or the session no longer exists.
func (s *Session) giveBack(ctx context.Context, remove func(context.Context) error) error {
	const forever = 1 << 62
	id := s.SessionID()
	err := locks.GiveBack(ctx, time.Now().Add(forever), func(ctx context.Context) error {
		err := remove(ctx)
		if err != nil && s.ended(err) {
			return errSessionEnded
		}
		return err
	})
	if s.SessionID() != id {
		return errSessionEnded
	}
	return err
}

// ended reports whether a request failed because Close was called. Then no repetition can succeed,
// although the driver may answer with ErrConnectionClosed.
func (s *Session) ended(err error) bool {
	select {
	case <-s.closed:
		return true
	default:
		return errors.Is(err, zk.ErrClosing)
	}
}
