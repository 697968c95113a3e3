package redislock

import (
	"cmp"
	"context"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/locks"
)

type polledLock struct {
	client redis.UniversalClient
	prefix string        // of the keys in Redis
	lease  time.Duration // the default lease
}

func (l *polledLock) of(r locks.Request) (lock string, lease time.Duration) {
	return l.prefix + r.Key, cmp.Or(r.Lease, l.lease)
}

// Clear deletes the key, even of a held lock: a key without expiry stays after its holder's crash.
func (l *polledLock) Clear(ctx context.Context, key string) error {
	return l.client.Del(ctx, l.prefix+key).Err()
}

type attempt struct {
	take  func(context.Context) (bool, error)
	pause time.Duration // between two calls of take
	// random is added to each pause: a duration from 0 to below it. 0 means none.
	random time.Duration
	// unsure undoes a take that got no answer. Nil means that the key could be another holder's.
	unsure func(context.Context) error
	// grant describes the lock. acquire sets its Key, Owner, Asked and NoRenew.
	grant locks.Grant
}

func (a attempt) acquire(ctx context.Context, r locks.Request) (*locks.Lock, error) {
	asked, err := a.poll(ctx, r)
	if err != nil {
		return nil, err
	}
	a.grant.Key, a.grant.Owner, a.grant.Asked, a.grant.NoRenew = r.Key, r.Owner, asked, r.NoRenew
	return locks.NewLock(ctx, a.grant), nil
}

// poll calls take until the lock is acquired or r.Wait has passed. If r.Wait is 0, it calls take
// once. asked is the start of the last call. No message reports a release, so each waiter sends a
// command after every pause, and may notice a release late. The strategy redis sends messages.
func (a attempt) poll(ctx context.Context, r locks.Request) (asked time.Time, err error) {
	for began := time.Now(); ; {
		if ctx.Err() != nil {
			return asked, locks.NotAcquired(ctx, r.Key, r.Wait)
		}
		asked = time.Now()
		got := false
		err := uncut(ctx, func(ctx context.Context) (err error) {
			got, err = a.take(ctx)
			return err
		})
		cancelled := ctx.Err() != nil
		switch {
		case err == nil && got && !cancelled:
			return asked, nil
		case err == nil && got: // the request was cancelled while Redis answered
			_ = uncut(ctx, a.grant.Release)
		case err != nil && a.unsure != nil:
			_ = uncut(ctx, a.unsure)
		}
		if cancelled || err != nil {
			return asked, notAcquired(ctx, r, "redis", err)
		}
		pause := a.pause
		if a.random > 0 {
			pause += locks.Jitter(ctx, a.random)
		}
		if err := locks.SleepRetry(ctx, r, began, pause); err != nil {
			return asked, err
		}
	}
}
