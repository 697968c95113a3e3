package adapter

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"oversell/api"
	"oversell/locks"
	"oversell/stock"
)

const (
	// overdue is the time after the wait of a request in which its answer must come.
	overdue = 5 * time.Second
	// answerTimeout limits all other answers. It is longer than that of a release.
	answerTimeout = 10 * time.Second
	// promptly is the time that a cancelled request waits for its answer. Afterwards the answer is
	// awaited in the background.
	promptly = 2 * time.Second
)

// errLate is the error of an answer that did not come in time.
var errLate = errors.New("no answer in time")

// acquire sends an acquire and waits for its answer. The program has no lock and no waiter left
// when it returns an error, or gives both up soon.
func (p *program) acquire(ctx context.Context, r locks.Request) (*locks.Lock, error) {
	c, err := p.send(Request{
		Do: doAcquire, Key: r.Key, Owner: r.Owner, WaitMS: milliseconds(r.Wait), LeaseMS: milliseconds(r.Lease), NoRenew: r.NoRenew, Fenced: r.Fenced,
	})
	if err != nil {
		return nil, unavailable("", err)
	}
	asked := time.Now()
	a, err := p.await(ctx, c, r.Wait+overdue)
	switch {
	case err != nil && ctx.Err() == nil && !errors.Is(err, errLate):
		return nil, unavailable("", err)
	case err != nil || a.Answer == granted && ctx.Err() != nil:
		p.withdraw(ctx, c, a)
		if errors.Is(err, errLate) {
			return nil, unavailable("", fmt.Errorf("acquire %d of %s: %w", c.ID, r.Key, err))
		}
		return nil, locks.NotAcquired(ctx, r.Key, r.Wait)
	case a.Answer == failed:
		return nil, unavailable(a.Backend, errors.New(a.Why))
	case a.Answer == notAcquired:
		return nil, locks.NotAcquired(ctx, r.Key, r.Wait)
	}
	return p.lock(ctx, c, a, asked), nil
}

// milliseconds rounds up, so that no wait is shorter than its request says.
func milliseconds(d time.Duration) int64 {
	return int64((d + time.Millisecond - 1) / time.Millisecond)
}

func unavailable(backend string, err error) error {
	return &stock.Unavailable{Backend: cmp.Or(backend, ID), Err: err}
}

// await returns the final answer of a call. It traces the steps before it. The limit counts in
// parts: a replica that was paused for longer than the limit still waits for the answer.
func (p *program) await(ctx context.Context, c *call, limit time.Duration) (Answer, error) {
	const part = 500 * time.Millisecond
	parts := time.Tick(part)
	for left := limit; ; {
		select {
		case a := <-c.answers:
			if a.final() {
				return a, nil
			}
			p.trace(ctx, c, a)
			left = limit // a failpoint may have paused the request
		case <-p.ended.Done():
			select {
			case a := <-c.answers:
				if a.final() { // the last line of the program
					return a, nil
				}
			default:
			}
			return Answer{}, p.failure()
		case <-ctx.Done():
			return Answer{}, context.Cause(ctx)
		case <-parts:
			if left -= part; left <= 0 {
				return Answer{}, fmt.Errorf("%w: none within %v", errLate, limit)
			}
		}
	}
}

func (p *program) trace(ctx context.Context, c *call, a Answer) {
	if a.Answer == queued {
		locks.Trace(ctx, api.Queued, c.Key, c.Owner, 0)
		return
	}
	locks.Trace(ctx, a.Step, c.Key, c.Owner, 0)
	_ = p.write(Request{Do: doContinue, Of: c.ID})
}

// withdraw cancels an acquire, and releases its lock if the program has granted it meanwhile. A
// program that answers the cancelled request too late is ended: its lock expires then.
func (p *program) withdraw(ctx context.Context, c *call, a Answer) {
	ctx = context.WithoutCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		if a.Answer == "" {
			if p.write(Request{Do: doCancel, Of: c.ID}) != nil {
				return
			}
			var err error
			if a, err = p.await(ctx, c, answerTimeout); errors.Is(err, errLate) {
				p.fail(fmt.Errorf("the program did not answer acquire %d within %v after its cancel", c.ID, answerTimeout))
			}
		}
		if a.Answer == granted {
			_, _ = p.ask(ctx, Request{Do: doRelease, Of: c.ID, Key: c.Key, Owner: c.Owner})
		}
	}()
	select {
	case <-done:
	case <-time.After(promptly):
	}
}

// lock makes the Lock of a granted acquire. It has no lease on our side: the program renews the
// lock, and sends lost when the lock has ended.
func (p *program) lock(ctx context.Context, c *call, a Answer, asked time.Time) *locks.Lock {
	of := func(do string) Request { return Request{Do: do, Of: c.ID, Key: c.Key, Owner: c.Owner} }
	grant := locks.Grant{
		Key: c.Key, Owner: c.Owner, Asked: asked, Fence: a.Fence,
		Release: func(ctx context.Context) error { return p.release(ctx, of(doRelease)) },
	}
	if p.hello.Capabilities.LossNotice {
		grant.Verify = func(ctx context.Context) error { return orNotHeld(p.ask(ctx, of(doVerify))) }
	}
	if p.hello.Capabilities.AdvanceFence {
		grant.AdvanceFence = func(ctx context.Context, floor int64) (int64, error) {
			r := of(doAdvance)
			r.Floor = floor
			a, err := p.ask(ctx, r)
			return a.Fence, orNotHeld(a, err)
		}
	}
	lock := locks.NewLock(ctx, grant)
	go func() {
		select {
		case why := <-c.lost:
			lock.MarkLost(errors.New(cmp.Or(why, "the program sent lost")))
		case <-p.ended.Done():
			lock.MarkLost(p.failure())
		case <-lock.Context().Done():
		}
	}()
	return lock
}

// release has its own time-out: a failpoint may pause it at a step for longer than that of ctx.
func (p *program) release(ctx context.Context, r Request) error {
	return orNotHeld(p.ask(context.WithoutCancel(ctx), r))
}

// ask sends a request other than acquire, and returns its final answer. The answer error is an error.
func (p *program) ask(ctx context.Context, r Request) (Answer, error) {
	c, err := p.send(r)
	if err != nil {
		return Answer{}, err
	}
	a, err := p.await(ctx, c, answerTimeout)
	switch {
	case errors.Is(err, errLate):
		err = fmt.Errorf("%s %d: %w", r.Do, c.ID, err)
		p.fail(err)
	case err == nil && a.Answer == failed:
		err = unavailable(a.Backend, errors.New(a.Why))
	}
	return a, err
}

// orNotHeld returns ErrNotHeld for the answer not_held.
func orNotHeld(a Answer, err error) error {
	if err == nil && a.Answer == notHeld {
		return locks.ErrNotHeld
	}
	return err
}
