package zklock

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/go-zookeeper/zk"

	"oversell/locks"
	"oversell/stock"
)

// retry tries again where a node was lost while the request waited: its session ended, its
// server died, or a reset deleted it. The request then queues with a new node. Any error
// that it returns is one that a Locker may return.
func retry[T any](ctx context.Context, s *Session, r locks.Request, began time.Time, try func() (T, error)) (T, error) {
	for {
		value, err := try()
		again := errors.Is(err, errNodeGone) || isNoNode(err) || s.serverDied(err, r, began)
		if again && ctx.Err() == nil {
			if err = locks.SleepRetry(ctx, r, began, 50*time.Millisecond); err == nil {
				continue
			}
		}
		return value, named(ctx, r, err)
	}
}

// serverDied reports whether another member of the ensemble may answer, at once or after an
// election. A request tries for one session time-out at most.
func (s *Session) serverDied(err error, r locks.Request, began time.Time) bool {
	var broken *net.OpError // written to a server that had just gone
	died := errors.Is(err, zk.ErrConnectionClosed) || errors.As(err, &broken) ||
		s.ensemble && errors.Is(err, zk.ErrNoServer)
	return died && time.Since(began) < min(r.Wait, s.timeout)
}

// named returns err as callers know it: most are a stock.Unavailable.
func named(ctx context.Context, r locks.Request, err error) error {
	for _, known := range []error{nil, locks.ErrNotAcquired, locks.ErrMismatch, locks.ErrUpgrade, locks.ErrFull, errUnknown, zk.ErrBadVersion} {
		if errors.Is(err, known) {
			return err
		}
	}
	if ctx.Err() != nil {
		return locks.NotAcquired(ctx, r.Key, r.Wait)
	}
	return &stock.Unavailable{Backend: "zookeeper", Err: err}
}

// errUnknown says that a write was sent, and no answer came.
var errUnknown = errors.New("no answer from ZooKeeper: the write may have been done or not, so look before you repeat it")

// bound ends the calls of a request one session time-out after its wait: an answer that is
// late must not be taken for a server that is gone.
func (s *Session) bound(ctx context.Context, r locks.Request, began time.Time) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, max(0, r.Wait-time.Since(began))+s.timeout)
}

// pause waits for a change. It also returns when the connection breaks or the wait is over:
// the caller looks once more, and its next pause then returns ErrNotAcquired.
func pause(ctx, alive context.Context, r locks.Request, began time.Time, changed <-chan zk.Event) (event zk.Event, err error) {
	left := r.Wait - time.Since(began)
	if left <= 0 || ctx.Err() != nil {
		return event, locks.NotAcquired(ctx, r.Key, r.Wait)
	}
	timer := time.NewTimer(left)
	defer timer.Stop()
	select {
	case event = <-changed:
	case <-alive.Done():
	case <-timer.C:
	case <-ctx.Done():
		return event, locks.NotAcquired(ctx, r.Key, r.Wait)
	}
	return event, nil
}

// makeEphemeral makes a node and returns its path. Where no answer comes, the server may have
// made it all the same: takeBack deletes what this request may have made.
func (s *Session) makeEphemeral(ctx context.Context, path string, data []byte, flags int32, takeBack func(context.Context) error) (string, error) {
	answered := make(chan struct{})
	made, err := do(ctx, func() (string, error) {
		defer close(answered)
		return s.Create(path, data, zk.FlagEphemeral|flags, zk.WorldACL(zk.PermAll))
	})
	// Without a server the request was never sent.
	for _, known := range []error{nil, zk.ErrNoNode, zk.ErrNodeExists, zk.ErrNoServer} {
		if errors.Is(err, known) {
			return made, err
		}
	}
	_ = s.giveBack(ctx, func(ctx context.Context) error {
		select {
		case <-answered: // before, the driver may still send the request
			return takeBack(ctx)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	})
	return "", err
}

// giveBack deletes a node of this session, also after ctx has ended. Where no answer comes it
// goes on in the background for as long as the session lives, which a node that nobody
// deletes would block. ErrNotHeld: there was no such node, or its session has ended.
func (s *Session) giveBack(ctx context.Context, remove func(context.Context) error) error {
	const forever = 1 << 62
	id := s.SessionID()
	clean, cancel := locks.CleanUp(ctx)
	defer cancel()
	err := locks.GiveBack(clean, time.Now().Add(forever), func(ctx context.Context) error {
		err := remove(ctx)
		if errors.Is(err, zk.ErrClosing) {
			return errSessionEnded
		}
		return err
	})
	if s.SessionID() != id {
		return errSessionEnded
	}
	return err
}
