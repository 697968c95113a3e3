package handlers

import (
	"context"
	"errors"
	"fmt"
	"time"

	"oversell/api"
	"oversell/locks"
)

// heldAnswer is the answer to a request that held a lock or permits and then released them.
type heldAnswer struct {
	primitiveAnswer
	HeldMS float64 `json:"held_ms"`
	// Then is the second lock that the owner acquired while it held the first.
	Then    string `json:"then,omitempty"`
	Permits int    `json:"permits,omitempty"`
	Qty     int    `json:"qty,omitempty"`
	Warning string `json:"warning,omitempty"`
}

func lockRoutes() []primitiveRoute {
	readWrite := func(p locks.Primitives) bool { return p.ReadWrite != nil }
	semaphore := func(p locks.Primitives) bool { return p.Semaphore != nil }
	return []primitiveRoute{
		{"read", readWrite, (*primitiveCall).readLock, []string{"hold", "wait", "lease", "then"}},
		{"write", readWrite, (*primitiveCall).writeLock, []string{"hold", "wait", "lease", "then"}},
		{"semaphore", semaphore, (*primitiveCall).semaphore, []string{"permits", "qty", "hold", "wait", "lease"}},
	}
}

// readLock holds the read lock (3.9.5, 4.6.3). With then=write, the answer is 409, "upgrade".
func (c *primitiveCall) readLock() operation {
	hold, then := c.readHold(10*time.Second), c.readThen("write")
	return func() (any, error) { return c.hold(c.ReadWrite.Read, hold, then, c.ReadWrite.Write) }
}

// writeLock holds the write lock. With then=read, it also acquires the read lock without waiting.
func (c *primitiveCall) writeLock() operation {
	hold, then := c.readHold(10*time.Second), c.readThen("read")
	return func() (any, error) { return c.hold(c.ReadWrite.Write, hold, then, c.ReadWrite.Read) }
}

// semaphore (3.9.6, 4.6.5) answers 409, "mismatch", if concurrent requests differ in permits.
func (c *primitiveCall) semaphore() operation {
	permits := int(c.number("permits", 3, 1, 1000))
	qty := int(c.number("qty", 1, 1, int64(max(1, permits))))
	hold := c.readHold(5 * time.Second)
	return func() (any, error) {
		lock, err := c.Semaphore.Acquire(c.context(), c.request, permits, qty)
		if err != nil {
			return nil, err
		}
		return c.finish(lock, heldAnswer{Permits: permits, Qty: qty}, func(ctx context.Context) error { return locks.Work(ctx, hold) })
	}
}

func (c *primitiveCall) readHold(otherwise time.Duration) time.Duration {
	hold := c.duration("hold", otherwise, 0)
	c.readWait()
	c.readLease()
	return hold
}

func (c *primitiveCall) readThen(other string) string {
	then := c.text("then", "")
	if c.values.Has("then") && then != other {
		c.fail("then", then, api.Textf("%s or left out", "%s，或者不写", other))
	}
	return then
}

type acquire func(context.Context, locks.Request) (*locks.Lock, error)

func (c *primitiveCall) hold(first acquire, hold time.Duration, then string, second acquire) (any, error) {
	lock, err := first(c.context(), c.request)
	if err != nil {
		return nil, err
	}
	return c.finish(lock, heldAnswer{Then: then}, func(ctx context.Context) error {
		if then == "" {
			return locks.Work(ctx, hold)
		}
		inner, err := second(ctx, c.request)
		if err != nil {
			return err
		}
		_, err = underLock(ctx, inner, func(ctx context.Context) error { return locks.Work(ctx, hold) })
		return err
	})
}

func (c *primitiveCall) finish(lock *locks.Lock, answer heldAnswer, work func(context.Context) error) (any, error) {
	c.granted = time.Now()
	c.trace(api.Granted)
	warning, err := underLock(c.context(), lock, work)
	c.trace(api.Released)
	if err != nil {
		return nil, err
	}
	answer.primitiveAnswer, answer.HeldMS, answer.Warning = c.done(api.Held), ms(time.Since(c.granted)), warning
	return answer, nil
}

// underLock calls work, and releases the lock even if the client has gone. It returns ErrLost if
// another owner may have held the lock. A failed release gives a warning, not an error.
func underLock(ctx context.Context, lock *locks.Lock, work func(context.Context) error) (warning string, err error) {
	defer func() {
		released := lock.Release(ctx)
		switch {
		case released == nil || err != nil:
		case errors.Is(released, locks.ErrNotHeld):
			err = fmt.Errorf("%w: %w", locks.ErrLost, released)
		default:
			warning = "the lock could not be released and stays until its lease expires: " + released.Error()
		}
	}()
	err = work(lock.Context())
	if lost := lock.Verify(); errors.Is(lost, locks.ErrLost) {
		err = lost
	}
	return "", err
}
