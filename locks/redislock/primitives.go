package redislock

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/locks"
	"oversell/stock"
)

// primitivePrefix begins every key of the primitives. What follows is the kind,
// then the user's key in braces, which keep a primitive on one node of a cluster.
const primitivePrefix = "primitive:"

// Primitives returns the read-write lock, the semaphore and the latch in one Redis (tutorial
// 3.9.5 to 3.9.7). lease is for requests that name none; it is renewed while the holder lives.
func Primitives(c redis.UniversalClient, lease time.Duration) locks.Primitives {
	p := &primitive{client: c, lease: lease, notifier: newNotifier(c, linger)}
	return locks.Primitives{
		Backend: "redis", ReadWrite: newReadWrite(p), Semaphore: newSemaphore(p), Latch: newLatch(p), Clear: p.clear,
	}
}

// primitive has what the kinds share.
type primitive struct {
	client   redis.UniversalClient
	lease    time.Duration
	notifier *notifier
}

// want is what one caller asks for.
type want struct {
	channel string
	// try sends one request: granted, or how long at least the leases in the way last.
	try func(context.Context) (granted bool, busy time.Duration, err error)
	// grant is the result. Its Release also undoes a try whose answer was lost.
	grant locks.Grant
}

// take tries until w is granted, r.Wait has passed since began, or ctx ends.
func (p *primitive) take(ctx context.Context, r locks.Request, began time.Time, w want) (*locks.Lock, error) {
	for {
		sequence := p.notifier.sequence(w.channel)
		h, busy, err := p.look(ctx, r, w)
		if h != nil || err != nil {
			return h, err
		}
		if err := p.notifier.wait(ctx, r, began, w.channel, sequence, busy); err != nil {
			return nil, err
		}
	}
}

// look tries once. Without a Lock and an error, it returns how long to wait.
func (p *primitive) look(ctx context.Context, r locks.Request, w want) (*locks.Lock, time.Duration, error) {
	w.grant.Asked, w.grant.Again = time.Now(), w.grant.Release // which names a token
	// DANGER: the script must end before our clean-up begins, or run after it. So a caller
	// that goes away does not cancel the script.
	trying, done := locks.CleanUp(ctx)
	granted, busy, err := w.try(trying)
	done()
	if errors.Is(err, locks.ErrUpgrade) || errors.Is(err, locks.ErrMismatch) {
		return nil, 0, err
	}
	if granted && ctx.Err() == nil {
		return locks.NewLock(ctx, w.grant), 0, nil
	}
	if granted || err != nil {
		clean, cancel := locks.CleanUp(ctx)
		_ = locks.GiveBack(clean, time.Time{}, w.grant.Release)
		cancel()
	}
	if ctx.Err() != nil || err != nil {
		return nil, 0, refused(ctx, r, err)
	}
	return nil, busy, nil
}

// life returns the request's lease, else the default.
func (p *primitive) life(r locks.Request) time.Duration {
	if r.Lease > 0 {
		return r.Lease
	}
	return p.lease
}

// refused returns the error of a try: the caller has gone, or the server is unavailable.
func refused(ctx context.Context, r locks.Request, err error) error {
	if ctx.Err() != nil {
		return locks.NotAcquired(ctx, r.Key, r.Wait)
	}
	return &stock.Unavailable{Backend: "redis", Err: err}
}

// clear deletes the keys of every primitive. Waiters try again; a holder notices its loss at
// the next renewal.
func (p *primitive) clear(ctx context.Context) error {
	keys := p.client.Scan(ctx, 0, primitivePrefix+"*", 1000).Iterator()
	for keys.Next(ctx) {
		key := keys.Val()
		if err := p.client.Del(ctx, key).Err(); err != nil {
			return &stock.Unavailable{Backend: "redis", Err: err}
		}
		if err := p.client.Publish(ctx, primitiveChannel(key), "0").Err(); err != nil {
			return &stock.Unavailable{Backend: "redis", Err: err}
		}
	}
	if err := keys.Err(); err != nil {
		return &stock.Unavailable{Backend: "redis", Err: err}
	}
	return nil
}

// primitiveChannel returns the channel for the messages about a key.
func primitiveChannel(key string) string {
	return key[:strings.LastIndex(key, "}")+1] + ":channel"
}
