package redislock

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/go-redsync/redsync/v4"

	"oversell/locks"
)

// mutex is one try for a lock. Its own token protects the next try from a late SET or DEL.
type mutex struct {
	*redsync.Mutex
	// hasty is the same lock as Mutex. A call of hasty returns when a majority of the masters has
	// answered. A call of Mutex waits for all masters, and for each at most nodeTimeout.
	hasty *redsync.Mutex
	each  []*redsync.Mutex // one for each master
	lease time.Duration
}

func (l *redlock) newMutex(r locks.Request, lease time.Duration) *mutex {
	// The token is set in advance, so that unlock also deletes keys of a failed try.
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

// nodeTimeout limits the wait for one master. A master that hangs must not use up the lease.
func nodeTimeout(lease time.Duration) time.Duration {
	return min(max(lease/20, 20*time.Millisecond), 200*time.Millisecond)
}

// unlock asks every master to delete the key, even a master that did not answer the SET, because
// this master may have the key. unlock returns when a majority has answered. If a master does not
// answer, unlock repeats the request in the background, but not after the time given by until.
//
// DANGER: a release on a majority is not enough. If each release leaves a key on another master,
// soon no majority of the masters is free.
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

// unlockOne deletes the key on one master, and may continue after unlock has returned. It returns
// ErrNotHeld if the master has no such key, or has the key of another holder.
func (m *mutex) unlockOne(ctx context.Context, node int, until time.Time) error {
	return locks.GiveBack(ctx, until, func(ctx context.Context) error {
		ok, err := m.each[node].UnlockContext(ctx)
		return majority(ok, err, 1)
	})
}

// sweep deletes keys of a failed try on masters without an answer, in the background.
func (m *mutex) sweep(ctx context.Context, failed failures) {
	for _, node := range failed.sent {
		go func() { _ = m.unlockOne(ctx, node, time.Now().Add(m.lease)) }()
	}
}

// extend renews the lease on every master, until a majority has answered or ctx ends. The other
// requests continue for at most one lease. After the unlock, they find no key and create none.
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

// majority translates redsync's result. It returns ErrNotHeld if no majority is left after
// rejections. If too many masters did not answer, it returns err, and the outcome is unknown.
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
	rejected    int   // number of masters without the lock, or with another holder's
	unreachable int   // number of masters that did not answer
	tooSlow     int   // number of unreachable masters whose answer did not come in time
	sent        []int // indexes of unreachable masters that may have received the request
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
