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

// Primitives are the read-write lock, the semaphore and the latch of one Redis
// (tutorial 3.9.5 to 3.9.7). lease is the life of a hold where the request
// names none; it is renewed while its holder lives.
func Primitives(c redis.UniversalClient, lease time.Duration) locks.Primitives {
	p := &primitive{client: c, lease: lease, notifier: newNotifier(c)}
	return locks.Primitives{
		Backend: "redis", ReadWrite: newReadWrite(p), Semaphore: newSemaphore(p), Latch: newLatch(p), Clear: p.clear,
	}
}

// primitive is what the kinds share.
type primitive struct {
	client   redis.UniversalClient
	lease    time.Duration
	notifier *notifier
}

// wish is what one caller wants to be granted.
type wish struct {
	channel string
	// try asks Redis once: granted, or for how long no lease in the way can end.
	try func(context.Context) (granted bool, busy time.Duration, err error)
	// grant is what becomes of it; its Release also takes back a try whose answer
	// is missing.
	grant locks.Grant
}

// take looks until the wish is granted, r.Wait has passed since began, or ctx ends.
func (p *primitive) take(ctx context.Context, r locks.Request, began time.Time, w wish) (*locks.Lock, error) {
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

// look tries once. No hold and no error: not now.
func (p *primitive) look(ctx context.Context, r locks.Request, w wish) (*locks.Lock, time.Duration, error) {
	w.grant.Asked, w.grant.Again = time.Now(), w.grant.Release // each names a token
	// What was begun ends: a script whose caller hangs up may run after our clean-up.
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

// life is the lease of a request's hold.
func (p *primitive) life(r locks.Request) time.Duration {
	if r.Lease > 0 {
		return r.Lease
	}
	return p.lease
}

// refused tells a caller that is gone from a server that is.
func refused(ctx context.Context, r locks.Request, err error) error {
	if ctx.Err() != nil {
		return locks.NotAcquired(ctx, r.Key, r.Wait)
	}
	return &stock.Unavailable{Backend: "redis", Err: err}
}

// clear deletes the keys of every primitive. Whoever waits looks again; whoever
// holds loses it, and learns so at the next renewal.
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

// primitiveChannel is where the news of a key's primitive are told.
func primitiveChannel(key string) string {
	return key[:strings.LastIndex(key, "}")+1] + ":channel"
}
