package redislock

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/api"
	"oversell/locks"
)

// GetSet stores the deadline of the lease in the value (002, 003). It suits old versions of Redis,
// which cannot set a key with an expiry in one command. Clients compare the deadline with their
// clock, and replace an expired deadline with GETSET. 002 also sends EXPIRE after SETNX or GETSET, which a
// later GETSET undoes. lease is the default lease.
func GetSet(c redis.UniversalClient, lease time.Duration) locks.Locker {
	return &redisGetSet{polledLock{c, "redis-getset:", lease}}
}

type redisGetSet struct{ polledLock }

func (l *redisGetSet) Acquire(ctx context.Context, r locks.Request) (*locks.Lock, error) {
	lock, lease := l.of(r)
	return attempt{
		take: func(ctx context.Context) (bool, error) { return l.take(ctx, lock, lease) },
		// 1 to 10 ms, as in 003, which hopes for fairness from it. 002 does not try again.
		pause: time.Millisecond, random: 9 * time.Millisecond,
		// DANGER: the Grant has no Lease, so this holder does not notice the end of its lease.
		grant: locks.Grant{
			// DEL does not check the owner. After our lease, it frees the next holder's lock.
			Release: func(ctx context.Context) error { return notHeldIfZero(l.client.Del(ctx, lock).Result()) },
		},
	}.acquire(ctx, r)
}

func (l *redisGetSet) take(ctx context.Context, lock string, lease time.Duration) (bool, error) {
	// DANGER: the deadline is written by one client's clock and compared with another client's. A
	// client whose clock is fast by a lease takes the lock from a holder that still works.
	now := time.Now()
	deadline := strconv.FormatInt(now.Add(lease).UnixMilli()+1, 10)
	if got, err := l.client.SetNX(ctx, lock, deadline, 0).Result(); err != nil || got {
		return got, err
	}
	seen, err := l.client.Get(ctx, lock).Result()
	if errors.Is(err, redis.Nil) {
		return false, nil // the lock was released meanwhile: try again
	}
	if err != nil {
		return false, err
	}
	if end, err := strconv.ParseInt(seen, 10, 64); err != nil || now.UnixMilli() <= end {
		return false, nil //nolint:nilerr // without a deadline, the key is foreign
	}
	// Several clients may have read the same old deadline. The first GETSET (today SET with GET)
	// returns that deadline, and its client gets the lock. The other clients get a newer deadline.
	// DANGER: the other clients have overwritten the deadline of the first client with their own.
	before, err := l.client.SetArgs(ctx, lock, deadline, redis.SetArgs{Get: true}).Result()
	if errors.Is(err, redis.Nil) {
		return true, nil // the key was deleted meanwhile: our GETSET created it
	}
	return err == nil && before == seen, err
}

func (*redisGetSet) Card() api.Card {
	return card(api.Card{
		ID: "redis-getset", Source: "002, 003", Lease: true, LeasePerRequest: true, Unchecked: true, Slow: true,
		Title: api.Text{EN: "A deadline in the value, taken over by GETSET", ZH: "值里存到期时间，GETSET 接管"},
		Summary: api.Text{
			EN: "SETNX stores the end of the lease on the client's clock; after that time, the first GETSET takes the lock over.",
			ZH: "SETNX 按客户端时钟写入到期时间；过期后，第一个 GETSET 的请求接管。",
		},
		When: api.Text{
			EN: "Not for production: a client whose clock is fast takes the lock from a holder that still works. Use `redis` instead.",
			ZH: "不要用于生产环境：时钟快的客户端会抢走别人正在用的锁。请改用 `redis`。",
		},
		Protects: []api.Hazard{api.Race, api.ReplicaRace, api.Crash},
		Breaks: []api.Break{
			{Hazard: api.ClockJump, Why: api.Text{
				EN: "Clients compare deadlines by their own clocks: a fast one takes the lock from a holder that works.",
				ZH: "到期与否看各客户端自己的时钟，走得快的会抢走仍在使用的锁。",
			}},
			{Hazard: api.ForeignUnlock},
			{Hazard: api.LostReply, Why: api.Text{
				EN: "After a lost answer, the deadline in the key shows no owner: the lock stays until the deadline has passed.",
				ZH: "应答丢了，到期时间不标明持有者，锁要等到期后才能再用。",
			}},
		},
	}, api.Overrun, api.Pause, api.Nesting, api.Polling, api.Failover, api.Operator, api.Starved)
}
