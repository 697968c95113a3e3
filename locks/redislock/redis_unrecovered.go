package redislock

import (
	"context"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/api"
	"oversell/locks"
)

// Unrecovered is Watchdog with the renewal that document 003 prints (Redisson's renewExpiration).
// After a renewal that fails, it does not renew again, and the holder is not notified. lease is the
// default lease.
func Unrecovered(c redis.UniversalClient, lease time.Duration) locks.Locker {
	return &redisUnrecovered{newReentrant(c, "redis-unrecovered:", lease), redis.NewScript(watchdogRenewLua)}
}

type redisUnrecovered struct {
	*redisReentrant
	renew *redis.Script
}

func (l *redisUnrecovered) Acquire(ctx context.Context, r locks.Request) (*locks.Lock, error) {
	lock, lease := l.of(r)
	holding := l.attempt(r) // its Grant has no Lease, so this holder does not notice the end of its lease
	release := holding.grant.Release
	var watchdog sync.WaitGroup
	renewing, stop := context.WithCancel(context.WithoutCancel(ctx))
	holding.grant.Release = func(ctx context.Context) error {
		stop()
		watchdog.Wait() // a renewal after the release could keep alive a lock that no request holds
		return release(ctx)
	}
	h, err := holding.acquire(ctx, r)
	if err != nil {
		stop()
		return nil, err
	}
	if !r.NoRenew {
		watchdog.Go(func() { l.renewUntilError(renewing, lock, r.Owner, lease) })
	}
	return h, nil
}

// renewUntilError renews the lease every third of it, until ctx ends.
func (l *redisUnrecovered) renewUntilError(ctx context.Context, lock, owner string, lease time.Duration) {
	for locks.Work(ctx, lease/3) == nil {
		// DANGER: the listing logs the error and returns. The lease then ends, even if Redis can be
		// reached again at once. The holder works on, at the same time as the next holder.
		if run(ctx, l.client, l.renew, []string{lock}, owner, millis(lease)) != nil {
			return
		}
	}
}

func (*redisUnrecovered) Card() api.Card {
	return card(api.Card{
		ID: "redis-unrecovered", Source: "003",
		Lease: true, LeasePerRequest: true, Renews: true, Unchecked: true, Reentrant: true, Slow: true,
		Title: api.Text{EN: "The counting hash, renewed until the first error", ZH: "可重入锁加续期，续期出错就不再续"},
		Summary: api.Text{
			EN: "Renewed every third of the lease like redis-watchdog; after one failed renewal, it is never renewed again, and the holder is not notified.",
			ZH: "和 redis-watchdog 一样每三分之一租期续一次；有一次续期出错，就不再续期，也不通知持有者。",
		},
		When: api.Text{
			EN: "Not for production: the watchdog stops at its first error, and two holders write. Use `redis`, which notifies a holder of a lost lock.",
			ZH: "不要用于生产环境：看门狗一次续期出错就停，两个持有者会同时写入。请改用 `redis`，它会通知持有者锁已丢失。",
		},
		Protects: []api.Hazard{api.Race, api.ReplicaRace, api.Crash, api.ForeignUnlock, api.Nesting, api.Overrun},
		Breaks: []api.Break{
			{Hazard: api.Cutoff, Why: api.Text{
				EN: "The first renewal that fails is the last one. The holder is not notified, and writes beside the next holder.",
				ZH: "续期一旦出错就不再续，持有者也不知道，会和下一个持有者同时写入。",
			}},
			{Hazard: api.RenewalReply, Why: api.Text{
				EN: "A renewal whose answer is lost counts as failed, and is the last one, although Redis has carried it out.",
				ZH: "续期的应答丢了就算出错，以后不再续期，其实 Redis 已经续过。",
			}},
		},
	}, api.LostReply, api.Pause, api.Polling, api.Failover, api.ClockJump, api.Operator, api.Starved)
}
