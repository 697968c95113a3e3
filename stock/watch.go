package stock

import (
	"context"

	"oversell/api"
)

// Watch has what looks at one request. Each of its fields may be nil.
type Watch struct {
	// Step is called at every step, in the goroutine of the request. So it can also pause or end this
	// goroutine, as failpoints do.
	Step func(context.Context, api.Event)
	// Statement is called when a statement begins, with its text without the arguments. It returns a
	// function that is called when the statement ends.
	Statement func(ctx context.Context, query string) (end func(error))
	// Lock is called with what happens to a lock of the request, after its grant in any goroutine. It must
	// not wait.
	Lock func(LockEvent, error)
	// Commands records the commands that the request sends to its backends.
	Commands *Commands
}

// LockEvent is what happens to a lock.
type LockEvent int

const (
	// LockRenewed follows each renewal of a lease. The error is nil, wraps locks.ErrNotHeld, or means that no
	// answer came: then the renewal is sent again.
	LockRenewed LockEvent = iota
	// LockLost comes at most once for each lock: when its holder notices the loss, at the latest when the
	// release finds it. The error wraps locks.ErrLost or locks.ErrNotHeld.
	LockLost
	// LockReleasing comes before the release is sent.
	LockReleasing
	// LockRetried comes before the grant, each time that the request tries again.
	LockRetried
)

type watchKey struct{}

// WithWatch returns a context whose request reports to w.
func WithWatch(ctx context.Context, w Watch) context.Context {
	return context.WithValue(ctx, watchKey{}, &w)
}

// WatchOf returns what looks at the request of ctx, which may be nothing.
func WatchOf(ctx context.Context) Watch {
	if w, ok := ctx.Value(watchKey{}).(*Watch); ok {
		return *w
	}
	return Watch{}
}
