package redislock

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/api"
	"oversell/locks"
)

// Expire uses one command, SET NX PX (tutorial 3.2), so that the lock of a dead holder expires.
func Expire(c redis.UniversalClient, lease time.Duration) locks.Locker {
	return &redisExpire{polledLock{c, "redis-expire:", lease}}
}

type redisExpire struct{ polledLock }

func (l *redisExpire) Acquire(ctx context.Context, r locks.Request) (*locks.Lock, error) {
	lock, lease := l.of(r)
	return attempt{
		take:  func(ctx context.Context) (bool, error) { return l.client.SetNX(ctx, lock, "locked", lease).Result() },
		pause: 50 * time.Millisecond,
		// DANGER: the Grant has no Lease, so this holder does not notice the end of its lease.
		grant: locks.Grant{
			// DANGER: DEL checks no owner. After our lease, it deletes the next holder's lock.
			// The next holder then deletes its successor's lock, and soon no lock excludes anyone.
			Release: func(ctx context.Context) error { return notHeldIfZero(l.client.Del(ctx, lock).Result()) },
		},
	}.acquire(ctx, r)
}

func (*redisExpire) Card() api.Card {
	return card(api.Card{
		ID: "redis-expire", Source: "3.2", Lease: true, LeasePerRequest: true, Unchecked: true, Slow: true,
		Title: api.Text{EN: "SET NX with an expiry", ZH: "SET NX 带过期时间"},
		Summary: api.Text{
			EN: "SET NX PX creates the key with its expiry in one command; the release deletes it without a comparison.",
			ZH: "SET NX PX 一条命令建键并设过期；释放时不比较，直接删除。",
		},
		When: api.Text{
			EN: "Not for production: a holder that works longer than its lease deletes the next holder's lock. Use `redis` instead.",
			ZH: "不要用于生产环境：业务超过租期的持有者会误删下一个持有者的锁。请改用 `redis`。",
		},
		Protects: []api.Hazard{api.Race, api.ReplicaRace, api.Crash},
		Breaks: []api.Break{
			{Hazard: api.ForeignUnlock},
			{Hazard: api.LostReply, Why: api.Text{
				EN: "A SET whose answer is lost may have created the key; its constant value does not show its owner, so it blocks for a lease.",
				ZH: "SET 的应答丢了，键可能已建；固定的值不标明持有者，要等一个租期。",
			}},
		},
		Tutorial: []api.Figure{{Note: api.Text{EN: "lease of 3 s", ZH: "租期 3 秒"}, Throughput: 47.7, MedianMS: 25, Remaining: 0}},
	}, api.Overrun, api.Pause, api.Nesting, api.Polling, api.Failover, api.ClockJump, api.Operator, api.Starved)
}
