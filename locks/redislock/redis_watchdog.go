package redislock

import (
	"context"
	_ "embed"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/api"
	"oversell/locks"
)

//go:embed redis_reentrant_acquire.lua
var watchdogAcquireLua string

//go:embed redis_watchdog_renew.lua
var watchdogRenewLua string

//go:embed redis_reentrant_release.lua
var watchdogReleaseLua string

// Watchdog is ReentrantLock with a lease that is renewed every third of it while the holder
// lives (tutorial 3.7). It uses the acquire and release scripts of redis-reentrant. lease is for
// requests that name none.
func Watchdog(c redis.UniversalClient, lease time.Duration) locks.Locker {
	return &redisWatchdog{
		client: c, lease: lease, renew: redis.NewScript(watchdogRenewLua),
		acquire: redis.NewScript(watchdogAcquireLua), release: redis.NewScript(watchdogReleaseLua),
	}
}

type redisWatchdog struct {
	client                  redis.UniversalClient
	lease                   time.Duration
	acquire, renew, release *redis.Script
}

func (l *redisWatchdog) Acquire(ctx context.Context, r locks.Request) (*locks.Lock, error) {
	lock, lease := []string{"redis-watchdog:" + r.Key}, leaseOf(r, l.lease)
	hold := locks.Token(r.Owner) // names this grant: a release that is sent twice counts once
	release := func(ctx context.Context) error {
		return counted(l.release.Run(ctx, l.client, lock, r.Owner, hold).Int64())
	}
	asked, err := poll(ctx, r, try{
		take: func(ctx context.Context) (bool, error) {
			return l.acquire.Run(ctx, l.client, lock, r.Owner, millis(lease), hold).Bool()
		},
		giveBack: release, // no remedy for a lost answer, as in redis-reentrant
	})
	if err != nil {
		return nil, err
	}
	// The Lock calls Renew every third of the lease, and stops that before the release.
	// DANGER: a process that is paused renews nothing. When it goes on after its lease, the
	// next holder works at the same time.
	return locks.NewLock(ctx, locks.Grant{
		Key: r.Key, Owner: r.Owner, Asked: asked, Lease: lease, Release: release, Again: release,
		Renew: func(ctx context.Context) error {
			return held(l.renew.Run(ctx, l.client, lock, r.Owner, millis(lease)).Int64())
		},
	}), nil
}

// Clear deletes the hash, also that of a holder.
func (l *redisWatchdog) Clear(ctx context.Context, key string) error {
	return l.client.Del(ctx, "redis-watchdog:"+key).Err()
}

func (*redisWatchdog) Card() api.Card {
	return api.Card{
		ID: "redis-watchdog", Family: "redis", Source: "3.7; 003", Scope: api.ScopeShared, Safe: true,
		Backends: []string{"mysql", "redis"}, Locker: true,
		Lease: true, LeasePerRequest: true, Renews: true, Reentrant: true, Slow: true,
		Title: api.Text{EN: "The counting hash, renewed", ZH: "可重入锁加自动续期"},
		Summary: api.Text{
			EN: "The hash of redis-reentrant, renewed every third of the lease while its holder lives.",
			ZH: "在 redis-reentrant 之上，持有者活着就每三分之一租期续一次。",
		},
		Protects: []api.Hazard{api.Race, api.ReplicaRace, api.Crash, api.ForeignUnlock, api.Nesting, api.Cutoff, api.Overrun},
		Breaks: append([]api.Break{
			{Hazard: api.LostReply, Why: api.Text{
				EN: "An acquisition whose answer is lost leaves the count one too high: the lock stays until its lease ends.",
				ZH: "加锁的应答丢了，次数就多了一，锁要等到租期结束才空。",
			}},
		}, usual(api.Pause, api.Polling, api.Failover, api.ClockJump)...),
		Tutorial: []api.Figure{{Throughput: 47.7, MedianMS: 32, Remaining: 0}},
	}
}
