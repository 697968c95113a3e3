package locks

import "context"

// Observer receives what happens to the locks of one request after their grant. Its methods may be
// called in any goroutine, and must not wait.
type Observer interface {
	// Renewed is called after each renewal of a lease. err is nil, wraps ErrNotHeld, or means that no
	// answer came: then the renewal is sent again.
	Renewed(err error)
	// Lost is called at most once for each lock: when its holder notices the loss, at the latest when
	// the release finds it. why wraps ErrLost or ErrNotHeld.
	Lost(why error)
	// Releasing is called before the release is sent.
	Releasing()
}

type observerKey struct{}

// WithObserver returns a context whose locks report to o.
func WithObserver(ctx context.Context, o Observer) context.Context {
	return context.WithValue(ctx, observerKey{}, o)
}

// unobserved is the Observer of a lock whose context has none.
type unobserved struct{}

func (unobserved) Renewed(error) {}
func (unobserved) Lost(error)    {}
func (unobserved) Releasing()    {}

// ObserverOf returns the observer of ctx, or one that ignores everything.
func ObserverOf(ctx context.Context) Observer {
	if o, ok := ctx.Value(observerKey{}).(Observer); ok {
		return o
	}
	return unobserved{}
}
