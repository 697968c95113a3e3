package redislock

import (
	"cmp"
	"context"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/api"
	"oversell/locks"
	"oversell/stock"
)

// card adds to c what most Redis locks share, and the given flaws, each with its usual reason.
func card(c api.Card, flaws ...api.Hazard) api.Card {
	c.Family, c.Scope, c.Safe, c.Locker = "redis", api.ScopeShared, true, true
	if c.Backends == nil {
		c.Backends = []string{"mysql", "redis"}
	}
	c.Setting = api.Text{
		EN: "Set `maxmemory-policy` to `noeviction`. With any other policy, a full Redis may delete a held lock, as in the hazard `operator`: the next holder gets it at once.",
		ZH: "请把 `maxmemory-policy` 设为 `noeviction`。用其他策略时，内存满了 Redis 就可能删掉正被持有的锁（与故障 `operator` 相同），下一个持有者立刻就能拿到。",
	}
	for _, flaw := range flaws {
		c.Breaks = append(c.Breaks, api.Break{Hazard: flaw})
	}
	for i, flaw := range c.Breaks {
		c.Breaks[i].Why = cmp.Or(flaw.Why, usual(flaw.Hazard, c.Fenced))
	}
	return c
}

func usual(hazard api.Hazard, fenced bool) api.Text {
	if hazard == api.Pause && fenced {
		return api.Text{
			EN: "A holder that is paused beyond its lease still writes when it goes on, unless the write is fenced.",
			ZH: "持有者停顿超过租期，醒来后照样写入，除非写入带栅栏号。",
		}
	}
	return map[api.Hazard]api.Text{
		api.Overrun: {
			EN: "The lease is not renewed: when the work takes longer, the next holder begins at the same time, and the first one does not notice.",
			ZH: "没有续期：业务超过租期，下一个持有者就会同时进来，前一个毫不知情。",
		},
		api.Pause: {
			EN: "A holder that is paused beyond its lease still writes when it goes on.",
			ZH: "持有者停顿超过租期，醒来后照样写入。",
		},
		api.Cutoff: {
			EN: "A holder that loses Redis, but not MySQL, does not notice the end of its lease, and writes beside the next holder.",
			ZH: "持有者连不上 Redis 却连得上 MySQL 时，不知道租期已经结束，会和下一个持有者同时写入。",
		},
		api.Nesting: {
			EN: "An owner that acquires again waits for itself.",
			ZH: "不可重入：同一持有者再次加锁，等的是自己。",
		},
		api.Polling: {
			EN: "Every waiter sends a request to Redis every 50 to 100 ms; a release sends no message.",
			ZH: "每个等待者每 50 到 100 毫秒向 Redis 请求一次，释放时没有通知。",
		},
		api.LostReply: { // of the locks that count in a hash
			EN: "An acquisition whose answer is lost leaves the count one too high: the lock stays until its lease ends.",
			ZH: "加锁的应答丢了，次数就多了一，锁要等到租期结束才空。",
		},
		api.ForeignUnlock: {
			EN: "A holder whose lease has expired deletes the key, even if another holds it by now.",
			ZH: "超过租期的持有者照样 DEL，删掉的是下一个持有者的锁。",
		},
		api.Failover: {
			EN: "Replication is asynchronous: the new master may not have the lock. If the old one goes on, both grant it.",
			ZH: "主从复制是异步的，新主可能没有这把锁。旧主若继续工作，两边都会发出这把锁。",
		},
		api.Operator: {
			EN: "A holder never checks its key again: if an operator deletes the key, it writes beside the next holder.",
			ZH: "加锁之后不再检查键：运维人员删掉键，它会和下一个持有者同时写入。",
		},
		api.Starved: {
			EN: "A holder that got no processor until the end of its lease works on, and writes what is outdated by then.",
			ZH: "持有者直到租期结束都没有分到 CPU，之后继续工作，写入早已过时的数据。",
		},
		api.ClockJump: {
			EN: "The lease runs on Redis's clock: when that jumps, the key expires early.",
			ZH: "租期按 Redis 的时钟走，时钟一跳，键就提前消失。",
		},
	}[hazard]
}

// undo releases a lock that a try may have acquired although it was cancelled or got no answer.
func undo(ctx context.Context, release func(context.Context) error) {
	_ = locks.GiveBack(ctx, time.Time{}, release)
}

func notAcquired(ctx context.Context, r locks.Request, backend string, err error) error {
	if ctx.Err() != nil {
		return locks.NotAcquired(ctx, r.Key, r.Wait)
	}
	return &stock.Unavailable{Backend: backend, Err: err}
}

func run(ctx context.Context, c redis.UniversalClient, script *redis.Script, keys []string, args ...any) error {
	return notHeldIfZero(script.Run(ctx, c, keys, args...).Int64())
}

// notHeldIfZero returns ErrNotHeld if the answer of Redis is 0, which means that the lock is not ours.
func notHeldIfZero(answer int64, err error) error {
	if err == nil && answer == 0 {
		return locks.ErrNotHeld
	}
	return err
}

// uncut runs do to its end, even if ctx is cancelled. Otherwise Redis could execute the command
// after the clean-up that should undo this command.
func uncut(ctx context.Context, do func(context.Context) error) error {
	ctx, cancel := locks.CleanUp(ctx)
	defer cancel()
	return do(ctx)
}

// millis returns the lease in ms for a script. Redis accepts whole ms only, and rejects 0.
func millis(lease time.Duration) int64 { return max(1, lease.Milliseconds()) }
