package handlers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"oversell/api"
	"oversell/locks"
)

// heldAnswer is the answer to a request that held a lock or permits and then released them.
type heldAnswer struct {
	primitiveAnswer
	HeldMS float64 `json:"held_ms"`
	// Then is the second lock that the owner acquired while it held the first.
	Then string `json:"then,omitempty"`
	// Downgraded means that the owner then held the second lock only.
	Downgraded bool   `json:"downgraded,omitempty"`
	Permits    int    `json:"permits,omitempty"`
	Qty        int    `json:"qty,omitempty"`
	Warning    string `json:"warning,omitempty"`
}

func lockRoutes() []primitiveRoute {
	readWrite := func(p locks.Primitives) bool { return p.ReadWrite != nil }
	semaphore := func(p locks.Primitives) bool { return p.Semaphore != nil }
	return []primitiveRoute{
		{"read", readWrite, (*primitiveCall).readLock, []string{"hold", "wait", "lease", "then"}},
		{"write", readWrite, (*primitiveCall).writeLock, []string{"hold", "wait", "lease", "then", "downgrade"}},
		{"semaphore", semaphore, (*primitiveCall).semaphore, []string{"permits", "qty", "hold", "wait", "lease"}},
		{"read/lock", readWrite, lockFrom(func(c *primitiveCall) acquire { return c.ReadWrite.Read }), []string{"owner", "wait", "lease"}},
		{"read/unlock", readWrite, (*primitiveCall).giveBack, []string{"owner"}},
		{"write/lock", readWrite, lockFrom(func(c *primitiveCall) acquire { return c.ReadWrite.Write }), []string{"owner", "wait", "lease"}},
		{"write/unlock", readWrite, (*primitiveCall).giveBack, []string{"owner"}},
		{"semaphore/acquire", semaphore, lockFrom((*primitiveCall).permits), []string{"permits", "qty", "owner", "wait", "lease"}},
		{"semaphore/release", semaphore, (*primitiveCall).giveBack, []string{"owner"}},
	}
}

// readLock holds the read lock (3.9.5, 4.6.3). With then=write, the answer is 409, "upgrade".
func (c *primitiveCall) readLock() operation {
	hold, then := c.readHold(10*time.Second), c.readThen("write")
	return func() (any, error) { return c.hold(c.ReadWrite.Read, hold, heldAnswer{Then: then}, c.ReadWrite.Write) }
}

// writeLock holds the write lock. With then=read, it also acquires the read lock without waiting.
// With downgrade=true, it then releases the write lock, and holds the read lock only.
func (c *primitiveCall) writeLock() operation {
	hold, then := c.readHold(10*time.Second), c.readThen("read")
	downgrade := c.boolean("downgrade")
	if downgrade && then == "" {
		c.fail("downgrade", "true", api.Text{EN: "given with then=read", ZH: "与 then=read 一起给出"})
	}
	if downgrade {
		return func() (any, error) { return c.downgrade(hold) }
	}
	return func() (any, error) { return c.hold(c.ReadWrite.Write, hold, heldAnswer{Then: then}, c.ReadWrite.Read) }
}

// semaphore (3.9.6, 4.6.5) answers 409, "mismatch", if concurrent requests differ in permits.
func (c *primitiveCall) semaphore() operation {
	acquire, hold := c.permits(), c.readHold(5*time.Second)
	answer := heldAnswer{Permits: c.total, Qty: c.qty}
	return func() (any, error) { return c.hold(acquire, hold, answer, nil) }
}

// permits reads how many of how many permits the request takes.
func (c *primitiveCall) permits() acquire {
	c.total = int(c.number("permits", 3, 1, 1000))
	c.qty = int(c.number("qty", 1, 1, int64(max(1, c.total))))
	return func(ctx context.Context, r locks.Request) (*locks.Lock, error) {
		return c.Semaphore.Acquire(ctx, r, c.total, c.qty)
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

// hold works under the first lock, and also under the second if answer.Then names one.
func (c *primitiveCall) hold(first acquire, hold time.Duration, answer heldAnswer, second acquire) (any, error) {
	lock, err := first(c.context(), c.request)
	if err != nil {
		return nil, err
	}
	return c.finish(lock, answer, func(ctx context.Context) error {
		if answer.Then == "" {
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

// downgrade writes, reads, and drops the write lock (4.6.3). No writer holds the lock in between.
func (c *primitiveCall) downgrade(hold time.Duration) (any, error) {
	write, err := c.ReadWrite.Write(c.context(), c.request)
	if err != nil {
		return nil, err
	}
	var read *locks.Lock
	c.granted = time.Now()
	c.trace(c.context(), api.Granted)
	if warning, err := underLock(c.context(), write, func(context.Context) (err error) {
		// The read lock must not depend on the context of the write lock, which ends first.
		read, err = c.ReadWrite.Read(c.context(), c.request)
		return err
	}); err != nil || warning != (api.Text{}) {
		return nil, c.giveUp(read, err, warning)
	}
	c.trace(c.context(), downgraded)
	return c.finish(read, heldAnswer{Then: "read", Downgraded: true}, func(ctx context.Context) error { return locks.Work(ctx, hold) })
}

// downgraded is the step at which a writer has released the write lock, and holds the read lock.
const downgraded api.Step = "downgraded"

// giveUp releases the read lock of a downgrade that failed.
func (c *primitiveCall) giveUp(read *locks.Lock, err error, warning api.Text) error {
	if read != nil {
		_ = read.Release(c.context())
	}
	c.trace(c.context(), api.Released)
	return cmp.Or(err, error(refuse(http.StatusServiceUnavailable, api.Unavailable, "downgrade: %s", "降级：%[2]s", warning.EN, warning.ZH)))
}

func (c *primitiveCall) finish(lock *locks.Lock, answer heldAnswer, work func(context.Context) error) (any, error) {
	if c.granted.IsZero() {
		c.granted = time.Now()
		c.trace(c.context(), api.Granted)
	}
	warning, err := underLock(c.context(), lock, work)
	c.trace(c.context(), api.Released)
	if err != nil {
		return nil, err
	}
	answer.primitiveAnswer, answer.HeldMS, answer.Warning = c.done(api.Held), ms(time.Since(c.granted)), warning.In(requestLanguage(c.gin))
	return answer, nil
}

// underLock calls work, and releases the lock even if the client has gone. It returns ErrLost if
// another owner may have held the lock. A failed release gives a warning, not an error.
func underLock(ctx context.Context, lock *locks.Lock, work func(context.Context) error) (warning api.Text, err error) {
	defer func() {
		released := lock.Release(ctx)
		switch {
		case released == nil || err != nil:
		case errors.Is(released, locks.ErrNotHeld):
			err = fmt.Errorf("%w: %w", locks.ErrLost, released)
		default:
			warning = locks.ReleaseWarning(released)
		}
	}()
	err = work(lock.Context())
	if lost := lock.Verify(); errors.Is(lost, locks.ErrLost) {
		err = lost
	}
	return api.Text{}, err
}
