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

var (
	//go:embed latch_set.lua
	latchSetLua string
	//go:embed latch_count.lua
	latchCountLua string
)

const latchMost = 1_000_000

// latch is a count-down latch (tutorial 3.9.7). A Redis hash stores the count, and an id that is
// new each time the count is set. A latch without a hash is open. No request holds a latch, so a
// latch needs no lease.
type latch struct {
	*primitive
	set, count *redis.Script
}

func newLatch(p *primitive) *latch {
	return &latch{primitive: p, set: redis.NewScript(latchSetLua), count: redis.NewScript(latchCountLua)}
}

// latches, behind the prefix, is the Redis key of the set of all latches. A latch does not expire, so the number of
// latches is limited. The braces after "latch" keep all latches on one node of a cluster.
const latches = "latch{all}"

func latchNames(prefix, key string) (latch, channel string) {
	latch = prefix + latches + ":{" + key + "}"
	return latch, primitiveChannel(latch)
}

// TrySet sets the count (1 to 1000000). It returns false if the latch has a count already.
func (l *latch) TrySet(ctx context.Context, key string, count int) (set bool, err error) {
	if count < 1 || count > latchMost {
		return false, fmt.Errorf("count %d: a latch needs 1 to %d", count, latchMost)
	}
	name, _ := latchNames(l.prefix, key)
	done, err := l.run(ctx, key, l.set, []string{name, l.prefix + latches}, count, uuid.NewString(), locks.MaxNames)
	if err == nil && done < 0 {
		err = fmt.Errorf("%w: %d latches are counting; use the name of one of them, or reset the stock, which deletes them all", locks.ErrFull, locks.MaxNames)
	}
	return done == 1, err
}

// CountDown reduces the count by 1, never below 0, and returns the new count.
func (l *latch) CountDown(ctx context.Context, key string) (left int, err error) {
	name, channel := latchNames(l.prefix, key)
	return l.run(ctx, key, l.count, []string{name, channel, l.prefix + latches})
}

// run sends a script and waits for the answer, even if ctx is cancelled meanwhile.
func (l *latch) run(ctx context.Context, key string, script *redis.Script, keys []string, args ...any) (int, error) {
	if ctx.Err() != nil {
		return 0, locks.NotAcquired(ctx, key, 0)
	}
	running, done := locks.CleanUp(ctx)
	defer done()
	answer, err := script.Run(running, l.client, keys, args...).Int()
	if err != nil {
		return 0, &stock.Unavailable{Backend: "redis", Err: err}
	}
	return answer, nil
}

// Await waits until the latch has opened. Between two reads, the latch may open and be set again.
// So Await compares the id in the hash: a new id means that the latch was open in between.
func (l *latch) Await(ctx context.Context, r locks.Request) error {
	if ctx.Err() != nil {
		return locks.NotAcquired(ctx, r.Key, r.Wait)
	}
	name, channel := latchNames(l.prefix, r.Key)
	began, first := time.Now(), ""
	for {
		sequence := l.notifier.sequence(channel)
		found, err := l.client.HGet(ctx, name, "id").Result()
		switch {
		case errors.Is(err, redis.Nil):
			return nil
		case err != nil:
			return notAcquired(ctx, r, "redis", err)
		case first == "":
			first = found
		case found != first:
			return nil
		}
		// Read the latch at least once in each lease: a Redis that lost its data sends no message.
		if err := l.notifier.wait(ctx, r, began, channel, sequence, l.lease); err != nil {
			return err
		}
	}
}
