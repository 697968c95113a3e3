package redislock

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"oversell/locks"
	"oversell/stock"
)

//go:embed latch_set.lua
var latchSetLua string

//go:embed latch_count.lua
var latchCountLua string

// latchMost is the largest count of a latch.
const latchMost = 1_000_000

// latch is a count-down latch (tutorial 3.9.7): a hash with what is left to
// count and the name of this setting. No key: it is open. Nobody holds it, so
// it has no lease, and a process that dies changes nothing.
type latch struct {
	*primitive
	set, count *redis.Script
}

func newLatch(p *primitive) *latch {
	return &latch{primitive: p, set: redis.NewScript(latchSetLua), count: redis.NewScript(latchCountLua)}
}

// latches has the names of all latches. No latch expires, so they are counted; the first
// braces keep all of them on one node of a cluster.
const latches = primitivePrefix + "latch{all}"

// latchNames are the key of one latch, and where its opening is told.
func latchNames(key string) (latch, channel string) {
	latch = latches + ":{" + key + "}"
	return latch, primitiveChannel(latch)
}

// TrySet begins to count from count (1 to 1000000), unless one is counting.
func (l *latch) TrySet(ctx context.Context, key string, count int) (set bool, err error) {
	if count < 1 || count > latchMost {
		return false, fmt.Errorf("a latch counts from 1 to %d, not from %d", latchMost, count)
	}
	name, _ := latchNames(key)
	done, err := l.run(ctx, key, l.set, []string{name, latches}, count, uuid.NewString(), locks.MaxNames)
	if err == nil && done < 0 {
		err = fmt.Errorf("%w: %d latches are counting; use one of them, or reset the class, which removes them all", locks.ErrFull, locks.MaxNames)
	}
	return done == 1, err
}

// CountDown counts once, never below 0.
func (l *latch) CountDown(ctx context.Context, key string) (left int, err error) {
	name, channel := latchNames(key)
	return l.run(ctx, key, l.count, []string{name, channel, latches})
}

// run lets a script end that was begun, so that its answer is known even to a
// caller who hangs up.
func (l *latch) run(ctx context.Context, key string, script *redis.Script, keys []string, args ...any) (int, error) {
	if ctx.Err() != nil {
		return 0, locks.NotAcquired(ctx, key, 0)
	}
	running, done := locks.CleanUp(ctx)
	defer done()
	said, err := script.Run(running, l.client, keys, args...).Int()
	if err != nil {
		return 0, &stock.Unavailable{Backend: "redis", Err: err}
	}
	return said, nil
}

// Await waits until the latch that it finds has opened. That one may be set anew
// before we have looked again, so what counts is its name, not the count.
func (l *latch) Await(ctx context.Context, r locks.Request) error {
	if ctx.Err() != nil {
		return locks.NotAcquired(ctx, r.Key, r.Wait)
	}
	name, channel := latchNames(r.Key)
	began, first := time.Now(), ""
	for {
		sequence := l.notifier.sequence(channel)
		found, err := l.client.HGet(ctx, name, "id").Result()
		switch {
		case errors.Is(err, redis.Nil):
			return nil
		case err != nil:
			return refused(ctx, r, err)
		case first == "":
			first = found
		case found != first:
			return nil
		}
		// No deadline to wait for. A look in each lease is for a Redis that
		// forgot the latch without a message.
		if err := l.notifier.wait(ctx, r, began, channel, sequence, l.lease); err != nil {
			return err
		}
	}
}
