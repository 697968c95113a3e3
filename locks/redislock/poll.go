package redislock

import (
	"context"
	"time"

	"oversell/locks"
	"oversell/stock"
)

// every is how long the polling rungs sleep between two tries (tutorial 3.1;
// its later sections sleep 50 and 60 ms).
const every = 100 * time.Millisecond

// try is how a rung asks for its lock.
type try struct {
	// take asks once, and reports whether the lock is ours.
	take func(context.Context) (bool, error)
	// giveBack undoes a take that got the lock.
	giveBack func(context.Context) error
	// unsure undoes a take whose answer is missing. nil: nobody can, for what
	// is found in Redis then may as well be a stranger's.
	unsure func(context.Context) error
}

// poll tries, sleeps and tries again until the lock is ours, ctx ends or r.Wait
// is over; a wait of 0 is one try. asked is when the try was sent that got the
// lock. Nobody is told of a release: that costs a command per waiter every
// 100 ms, and up to 100 ms of a free lock. `redis` has the remedy.
func poll(ctx context.Context, r locks.Request, t try) (asked time.Time, err error) {
	for began := time.Now(); ; {
		if ctx.Err() != nil {
			return asked, locks.NotAcquired(ctx, r.Key, r.Wait)
		}
		asked = time.Now()
		got := false
		err := uncut(ctx, func(ctx context.Context) (err error) {
			got, err = t.take(ctx)
			return err
		})
		gone := ctx.Err() != nil
		switch {
		case err == nil && got && !gone:
			return asked, nil
		case err == nil && got: // the caller left while Redis answered
			_ = uncut(ctx, t.giveBack)
		case err != nil && t.unsure != nil:
			_ = uncut(ctx, t.unsure)
		}
		switch {
		case gone:
			return asked, locks.NotAcquired(ctx, r.Key, r.Wait)
		case err != nil:
			return asked, &stock.Unavailable{Backend: "redis", Err: err}
		}
		if err := locks.SleepRetry(ctx, r, began, every); err != nil {
			return asked, err
		}
	}
}

// uncut runs do to its end, also for a caller that hangs up: what was begun may
// still run inside Redis, after the clean-up of somebody who did not wait.
func uncut(ctx context.Context, do func(context.Context) error) error {
	ctx, cancel := locks.CleanUp(ctx)
	defer cancel()
	return do(ctx)
}

// leaseOf is the request's lease, else the strategy's default.
func leaseOf(r locks.Request, standard time.Duration) time.Duration {
	if r.Lease > 0 {
		return r.Lease
	}
	return standard
}

// millis is a lease as scripts take it: Redis wants whole ms, and refuses 0.
func millis(lease time.Duration) int64 { return max(1, lease.Milliseconds()) }

// usual has the flaws that several rungs share, in the same words.
func usual(hazards ...locks.Hazard) []locks.Break {
	words := map[locks.Hazard]locks.Text{
		locks.Overrun: {
			EN: "Nobody renews the lease: when the work takes longer, the next holder begins beside it.",
			ZH: "没有续期：业务超过租期，下一个持有者就会同时进来。",
		},
		locks.Pause: {
			EN: "A holder that sleeps past its lease still writes when it wakes up.",
			ZH: "持有者停顿超过租期，醒来后照样写入。",
		},
		locks.Nesting: {
			EN: "An owner that acquires again waits for itself.",
			ZH: "不可重入：同一持有者再次加锁，等的是自己。",
		},
		locks.Polling: {
			EN: "Every waiter asks Redis every 100 ms; nobody tells it of a release.",
			ZH: "每个等待者每 100 毫秒问一次 Redis，释放时没人通知。",
		},
		locks.Failover: {
			EN: "Replication is asynchronous: the new master may never have heard of the lock.",
			ZH: "主从复制是异步的，新主可能没有这把锁。",
		},
		locks.ClockJump: {
			EN: "The lease runs on Redis's clock: when it leaps, the key is gone early.",
			ZH: "租期按 Redis 的时钟走，时钟一跳，键就提前消失。",
		},
	}
	all := make([]locks.Break, len(hazards))
	for i, hazard := range hazards {
		all[i] = locks.Break{Hazard: hazard, Why: words[hazard]}
	}
	return all
}
