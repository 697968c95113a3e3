package redislock

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/go-redsync/redsync/v4"

	"oversell/locks"
)

// mutex is one try for a lock, and its result. Each try has a value of its own: a late SET or
// DEL of a slow try must not affect the next one.
type mutex struct {
	*redsync.Mutex
	// hasty is the same lock, for calls that return when a majority has answered. TryLock waits
	// for all masters, and for each at most nodeTimeout.
	hasty *redsync.Mutex
	each  []*redsync.Mutex // on one master each
	lease time.Duration
}

func (l *redlock) newMutex(r locks.Request, lease time.Duration) *mutex {
	// With the value set, an unlock also deletes what a failed try left on some masters.
	token := locks.Token(r.Owner)
	options := []redsync.Option{
		redsync.WithExpiry(lease), redsync.WithTimeoutFactor(float64(nodeTimeout(lease)) / float64(lease)),
		redsync.WithValue(token), redsync.WithGenValueFunc(func() (string, error) { return token, nil }),
	}
	name := "redlock:" + r.Key
	m := &mutex{
		Mutex: l.redsync.NewMutex(name, options...),
		hasty: l.redsync.NewMutex(name, append(options, redsync.WithFailFast(true))...),
		lease: lease,
	}
	for _, master := range l.each {
		m.each = append(m.each, master.NewMutex(name, options...))
	}
	return m
}

// nodeTimeout is far less than the lease, which a single master that hangs would otherwise use up.
func nodeTimeout(lease time.Duration) time.Duration {
	return min(max(lease/20, 20*time.Millisecond), 200*time.Millisecond)
}

// unlockTimeout limits an unlock on the masters that are slower than a majority.
const unlockTimeout = 3 * time.Second

// unlock sends its request to every master, also to those whose grant timed out: they may have
// the key. It returns when a majority has answered. Where no answer comes, it repeats the
// request in the background, until the given time.
//
// DANGER: a release on a majority is not enough. One key that stays on one master, and one of
// the next holder on another, soon leave no majority to acquire.
func (m *mutex) unlock(ctx context.Context, until time.Time) error {
	ctx, cancel := locks.CleanUp(ctx)
	defer cancel()
	answers := make(chan error, len(m.each))
	for node := range m.each {
		go func() { answers <- m.unlockOne(ctx, node, until) }()
	}
	var released, refused int
	var errs []error
	for range m.each {
		var err error
		select {
		case err = <-answers:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		switch {
		case err == nil:
			released++
		case errors.Is(err, locks.ErrNotHeld):
			refused++
		default:
			errs = append(errs, err)
		}
		switch {
		case released > len(m.each)/2:
			return nil
		case refused > (len(m.each)-1)/2:
			return locks.ErrNotHeld
		}
	}
	return errors.Join(errs...)
}

// unlockOne goes on after unlock returns. ErrNotHeld means no such key, or another holder's key.
func (m *mutex) unlockOne(ctx context.Context, node int, until time.Time) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), unlockTimeout)
	defer cancel()
	return locks.GiveBack(ctx, until, func(ctx context.Context) error {
		ok, err := m.each[node].UnlockContext(ctx)
		return majority(ok, err, 1)
	})
}

// sweep deletes what a failed try may have left on masters without an answer, in the background.
func (m *mutex) sweep(ctx context.Context, failed failures) {
	for _, node := range failed.sent {
		go func() { _ = m.unlockOne(ctx, node, time.Now().Add(m.lease)) }()
	}
}

// extend renews the lease on every master. It returns when a majority has answered, or ctx
// ends; the requests to the others go on for a lease. A request that arrives after the unlock
// finds no key, and makes none.
func (m *mutex) extend(ctx context.Context) error {
	outlasting, cancel := context.WithCancel(context.WithoutCancel(ctx))
	time.AfterFunc(m.lease, cancel)
	answer := make(chan error, 1)
	go func() {
		ok, err := m.hasty.ExtendContext(outlasting)
		answer <- majority(ok, err, len(m.each))
	}()
	select {
	case err := <-answer:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// majority reads redsync's answer. The lock is not held if the masters that reject the request
// leave no majority. If that depends on masters that did not answer, the outcome is unknown.
func majority(ok bool, err error, nodes int) error {
	switch {
	case ok:
		return nil
	case err == nil || failuresOf(err).rejected > (nodes-1)/2:
		return locks.ErrNotHeld
	default:
		return err
	}
}

type failures struct {
	rejected    int   // they have no such lock, or another holder's
	unreachable int   // they did not answer
	tooSlow     int   // of the unreachable, those that did not answer in time
	sent        []int // of the unreachable, those that may have received the request
}

func failuresOf(err error) (f failures) {
	f.add(err)
	return f
}

func (f *failures) add(err error) {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range joined.Unwrap() {
			f.add(e)
		}
		return
	}
	var taken *redsync.ErrTaken
	var nodeTaken *redsync.ErrNodeTaken
	var down *redsync.RedisError
	var timeout net.Error
	switch {
	case errors.As(err, &taken):
		f.rejected += len(taken.Nodes)
	case errors.As(err, &nodeTaken) || errors.Is(err, redsync.ErrLockAlreadyExpired):
		f.rejected++
	case errors.As(err, &down):
		f.unreachable++
		if errors.Is(err, context.DeadlineExceeded) || errors.As(err, &timeout) && timeout.Timeout() {
			f.tooSlow++
		}
		if locks.Sent(down.Err) {
			f.sent = append(f.sent, down.Node)
		}
	}
}
