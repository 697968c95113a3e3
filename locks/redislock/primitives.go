package redislock

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/locks"
	"oversell/stock"
)

// primitivePrefix is the start of every Redis key of a primitive, behind the namespace. The kind of primitive follows,
// then the user's key in braces. The braces keep all these keys on one node of a cluster.
const primitivePrefix = "primitive:"

// Primitives returns the read-write lock, the semaphore and the latch in one Redis (tutorial
// 3.9.5 to 3.9.7), with keys of the namespace. lease is the default lease. A lease is renewed while its holder lives.
func Primitives(c redis.UniversalClient, namespace string, lease time.Duration) locks.Primitives {
	p := &primitive{client: c, prefix: strings.TrimPrefix(namespace+":"+primitivePrefix, ":"), lease: lease, notifier: newNotifier(c, linger)}
	return locks.Primitives{
		Backend: "redis", ReadWrite: newReadWrite(p), Semaphore: newSemaphore(p), Latch: newLatch(p), Clear: p.clear,
	}
}

type primitive struct {
	client   redis.UniversalClient
	prefix   string // the namespace and primitivePrefix
	lease    time.Duration
	notifier *notifier
}

// want describes one acquisition of a primitive.
type want struct {
	channel string
	// try sends one request. Without a grant, busy is how long a blocking lease may still last.
	try func(context.Context) (granted bool, busy time.Duration, err error)
	// grant describes the lock. Its Release also undoes a try whose answer was lost.
	grant locks.Grant
}

func (p *primitive) take(ctx context.Context, r locks.Request, began time.Time, w want) (*locks.Lock, error) {
	for {
		sequence := p.notifier.sequence(w.channel)
		h, busy, err := p.tryOnce(ctx, r, w)
		if h != nil || err != nil {
			return h, err
		}
		if err := p.notifier.wait(ctx, r, began, w.channel, sequence, busy); err != nil {
			return nil, err
		}
	}
}

// takeAsFirst is take for the first waiter of turns, see FIFOMutex.AsFirst.
func (p *primitive) takeAsFirst(ctx context.Context, r locks.Request, began time.Time, turns *locks.FIFOMutex, w want) (*locks.Lock, error) {
	return turns.AsFirst(ctx, r.Key, r, func(context.Context, locks.Request) (*locks.Lock, error) { return p.take(ctx, r, began, w) })
}

// tryOnce sends one request. If it returns no Lock and no error, it returns the time to wait.
func (p *primitive) tryOnce(ctx context.Context, r locks.Request, w want) (*locks.Lock, time.Duration, error) {
	w.grant.Asked, w.grant.NoRenew = time.Now(), r.NoRenew
	w.grant.Again = w.grant.Release // Release can be repeated
	// DANGER: the script must end before our clean-up begins, or the lock may be granted after
	// the clean-up. So the end of ctx does not cancel the script.
	trying, done := locks.CleanUp(ctx)
	granted, busy, err := w.try(trying)
	done()
	switch {
	case errors.Is(err, locks.ErrUpgrade) || errors.Is(err, locks.ErrMismatch):
		return nil, 0, err
	case err == nil && ctx.Err() == nil && !granted:
		return nil, busy, nil
	case err == nil && ctx.Err() == nil:
		return locks.NewLock(ctx, w.grant), 0, nil
	case granted || err != nil:
		undo(ctx, w.grant.Release)
	}
	return nil, 0, notAcquired(ctx, r, "redis", err)
}

// clear deletes all primitives and wakes the waiters. Holders notice the loss at the next renewal.
func (p *primitive) clear(ctx context.Context) error {
	keys := p.client.Scan(ctx, 0, p.prefix+"*", 1000).Iterator()
	var err error
	for err == nil && keys.Next(ctx) {
		key := keys.Val()
		if err = p.client.Del(ctx, key).Err(); err == nil {
			err = p.client.Publish(ctx, primitiveChannel(key), "0").Err()
		}
	}
	if err = cmp.Or(err, keys.Err()); err != nil {
		return &stock.Unavailable{Backend: "redis", Err: err}
	}
	return nil
}

func primitiveChannel(key string) string {
	return key[:strings.LastIndex(key, "}")+1] + ":channel"
}
