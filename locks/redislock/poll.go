package redislock

import (
	"context"
	"time"

	"oversell/api"
	"oversell/locks"
	"oversell/stock"
)

// every is how long the polling strategies sleep between two tries (tutorial 3.1; its later
// sections sleep 50 and 60 ms).
const every = 100 * time.Millisecond

// try has the commands with which a polling strategy acquires its lock.
type try struct {
	// take tries once, and reports whether it got the lock.
	take func(context.Context) (bool, error)
	// giveBack releases a lock that take got.
	giveBack func(context.Context) error
	// unsure releases what a take without an answer may have got. nil: not possible, for the
	// key in Redis could be another holder's.
	unsure func(context.Context) error
}

// poll tries, sleeps and tries again until it gets the lock, ctx ends or r.Wait has passed;
// with a wait of 0 it tries once. asked is when the successful try was sent.
//
// Without a message at a release, each waiter costs a command every 100 ms, and the lock can
// be free for 100 ms before a waiter notices. The strategy redis has the remedy.
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

// uncut runs do to its end, even if the caller goes away. Otherwise Redis could carry out a
// command after the clean-up that should undo it.
func uncut(ctx context.Context, do func(context.Context) error) error {
	ctx, cancel := locks.CleanUp(ctx)
	defer cancel()
	return do(ctx)
}

// leaseOf returns the request's lease, else the strategy's default.
func leaseOf(r locks.Request, standard time.Duration) time.Duration {
	if r.Lease > 0 {
		return r.Lease
	}
	return standard
}

// millis returns the lease for a script: Redis takes whole ms, and rejects 0.
func millis(lease time.Duration) int64 { return max(1, lease.Milliseconds()) }

// usual returns the flaws that several strategies share.
func usual(hazards ...api.Hazard) []api.Break {
	words := map[api.Hazard]api.Text{
		api.Overrun: {
			EN: "The lease is not renewed: when the work takes longer, the next holder begins at the same time.",
			ZH: "没有续期：业务超过租期，下一个持有者就会同时进来。",
		},
		api.Pause: {
			EN: "A holder that is paused beyond its lease still writes when it goes on.",
			ZH: "持有者停顿超过租期，醒来后照样写入。",
		},
		api.Nesting: {
			EN: "An owner that acquires again waits for itself.",
			ZH: "不可重入：同一持有者再次加锁，等的是自己。",
		},
		api.Polling: {
			EN: "Every waiter sends a request to Redis every 100 ms; a release sends no message.",
			ZH: "每个等待者每 100 毫秒问一次 Redis，释放时没人通知。",
		},
		api.Failover: {
			EN: "Replication is asynchronous: the new master may not have the lock.",
			ZH: "主从复制是异步的，新主可能没有这把锁。",
		},
		api.ClockJump: {
			EN: "The lease runs on Redis's clock: when that jumps, the key expires early.",
			ZH: "租期按 Redis 的时钟走，时钟一跳，键就提前消失。",
		},
	}
	all := make([]api.Break, len(hazards))
	for i, hazard := range hazards {
		all[i] = api.Break{Hazard: hazard, Why: words[hazard]}
	}
	return all
}
