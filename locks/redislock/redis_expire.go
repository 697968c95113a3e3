package redislock

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/api"
	"oversell/locks"
)

// Expire creates the key with its expiry in one command, SET NX PX (tutorial 3.2), so that a
// dead holder's lock expires. lease is for requests that name none.
func Expire(c redis.UniversalClient, lease time.Duration) locks.Locker {
	return &redisExpire{c, lease}
}

type redisExpire struct {
	client redis.UniversalClient
	lease  time.Duration
}

func (l *redisExpire) Acquire(ctx context.Context, r locks.Request) (*locks.Lock, error) {
	lock, lease := "redis-expire:"+r.Key, leaseOf(r, l.lease)
	// DANGER: the DEL does not compare. After our lease, it deletes the lock of the next
	// holder. That holder then deletes the lock of its successor, and soon no lock protects
	// anything.
	release := func(ctx context.Context) error { return held(l.client.Del(ctx, lock).Result()) }
	asked, err := poll(ctx, r, try{
		take:     func(ctx context.Context) (bool, error) { return l.client.SetNX(ctx, lock, "locked", lease).Result() },
		giveBack: release,
	})
	if err != nil {
		return nil, err
	}
	return locks.NewLock(ctx, locks.Grant{Key: r.Key, Owner: r.Owner, Asked: asked, Lease: lease, Release: release}), nil
}

// Clear deletes the key, also that of a holder.
func (l *redisExpire) Clear(ctx context.Context, key string) error {
	return l.client.Del(ctx, "redis-expire:"+key).Err()
}

func (*redisExpire) Card() api.Card {
	return api.Card{
		ID: "redis-expire", Family: "redis", Source: "3.2", Scope: api.ScopeShared, Safe: true,
		Backends: []string{"mysql", "redis"}, Locker: true, Lease: true, LeasePerRequest: true, Slow: true,
		Title: api.Text{EN: "SET NX with an expiry", ZH: "SET NX 带过期时间"},
		Summary: api.Text{
			EN: "SET NX PX creates the key with its expiry in one command; the release deletes it without a comparison.",
			ZH: "SET NX PX 一条命令建键并设过期；释放时不看是谁的，直接删。",
		},
		Protects: []api.Hazard{api.Race, api.ReplicaRace, api.Crash},
		Breaks: append([]api.Break{
			{Hazard: api.ForeignUnlock, Why: api.Text{
				EN: "A holder whose lease has expired deletes the key, even if another holds it by now.",
				ZH: "超过租期的持有者照样 DEL，删掉的是别人的锁。",
			}},
			{Hazard: api.LostReply, Why: api.Text{
				EN: "A SET whose answer is lost may have created the key; its constant value does not show its owner, so it blocks for a lease.",
				ZH: "SET 的应答丢了，键可能已建；固定的值说不清是谁的，要白等一个租期。",
			}},
		}, usual(api.Overrun, api.Pause, api.Nesting, api.Polling, api.Failover, api.ClockJump)...),
		Tutorial: []api.Figure{{Note: "lease of 3 s", Throughput: 47.7, MedianMS: 25, Remaining: 0}},
	}
}
