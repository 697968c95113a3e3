package redislock

import (
	"context"
	_ "embed"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/api"
	"oversell/locks"
)

//go:embed redis_watchdog_renew.lua
var watchdogRenewLua string

// Watchdog is ReentrantLock with a lease that is renewed every third of it while the holder
// lives (tutorial 3.7). lease is the default lease.
func Watchdog(c redis.UniversalClient, lease time.Duration) locks.Locker {
	return &redisWatchdog{newReentrant(c, "redis-watchdog:", lease), redis.NewScript(watchdogRenewLua)}
}

type redisWatchdog struct {
	*redisReentrant
	renew *redis.Script
}

func (l *redisWatchdog) Acquire(ctx context.Context, r locks.Request) (*locks.Lock, error) {
	lock, lease := l.of(r)
	renewed := l.attempt(r)
	renewed.grant.Lease = lease // so this holder notices the end of its lease
	// The Lock calls Renew every third of the lease, and stops these calls before the release.
	// DANGER: a process that is paused renews no lease. When it continues after its lease, it
	// works at the same time as the next holder.
	renewed.grant.Renew = func(ctx context.Context) error {
		return run(ctx, l.client, l.renew, []string{lock}, r.Owner, millis(lease))
	}
	return renewed.acquire(ctx, r)
}

func (*redisWatchdog) Card() api.Card {
	return card(api.Card{
		ID: "redis-watchdog", Source: "3.7; 003",
		Lease: true, LeasePerRequest: true, Renews: true, Reentrant: true, Slow: true,
		Title: api.Text{EN: "The counting hash, renewed", ZH: "可重入锁加自动续期"},
		Summary: api.Text{
			EN: "The hash of redis-reentrant, renewed every third of the lease while its holder lives.",
			ZH: "在 redis-reentrant 之上，持有者活着就每三分之一租期续一次。",
		},
		When: api.Text{
			EN: "Not for production: waiters poll, and a lost answer blocks the lock for a lease. Use `redis`, which also has fencing tokens.",
			ZH: "不要用于生产环境：等待者要轮询，加锁的应答一丢，锁就白占一个租期。请改用还带栅栏号的 `redis`。",
		},
		Protects: []api.Hazard{api.Race, api.ReplicaRace, api.Crash, api.ForeignUnlock, api.Nesting, api.Cutoff, api.Overrun, api.Operator, api.Starved, api.RenewalReply},
		Tutorial: []api.Figure{}, // the tutorial measured redis-reentrant
	}, api.LostReply, api.Pause, api.Polling, api.Failover, api.ClockJump)
}
