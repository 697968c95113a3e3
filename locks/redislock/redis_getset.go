package redislock

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/locks"
)

// GetSet writes the end of the lease into the value, for a Redis that could not
// set and expire in one command (002, 003): the deadline is compared by clients,
// and one that has passed is replaced with GETSET. lease is for requests that
// name none.
func GetSet(c redis.UniversalClient, lease time.Duration) locks.Locker {
	return &redisGetSet{c, lease}
}

type redisGetSet struct {
	client redis.UniversalClient
	lease  time.Duration
}

func (l *redisGetSet) Acquire(ctx context.Context, r locks.Request) (*locks.Lock, error) {
	lock, lease := "redis-getset:"+r.Key, leaseOf(r, l.lease)
	// A blind DEL: past our lease it frees a stranger's lock, as in redis-expire.
	release := func(ctx context.Context) error { return held(l.client.Del(ctx, lock).Result()) }
	asked, err := poll(ctx, r, try{
		take:     func(ctx context.Context) (bool, error) { return l.take(ctx, lock, lease) },
		giveBack: release,
	})
	if err != nil {
		return nil, err
	}
	return locks.NewLock(ctx, locks.Grant{Key: r.Key, Owner: r.Owner, Asked: asked, Lease: lease, Release: release}), nil
}

func (l *redisGetSet) take(ctx context.Context, lock string, lease time.Duration) (bool, error) {
	// DANGER: the deadline is written by one client's clock and read by another's.
	// A clock that is fast by a lease takes the lock from a holder that works.
	now := time.Now()
	deadline := strconv.FormatInt(now.Add(lease).UnixMilli()+1, 10)
	if got, err := l.client.SetNX(ctx, lock, deadline, 0).Result(); err != nil || got {
		return got, err
	}
	seen, err := l.client.Get(ctx, lock).Result()
	if errors.Is(err, redis.Nil) {
		return false, nil // free since: the next try gets it
	}
	if err != nil {
		return false, err
	}
	if end, err := strconv.ParseInt(seen, 10, 64); err != nil || now.UnixMilli() <= end {
		return false, nil //nolint:nilerr // no deadline is a stranger's key, not ours to take
	}
	// Several may have seen the same deadline pass. The first GETSET gets that one
	// back and has won; the others get a winner's. They have written theirs over
	// it, though: what says when the winner's lease ends is a loser's deadline.
	before, err := l.client.SetArgs(ctx, lock, deadline, redis.SetArgs{Get: true}).Result() // GETSET, as Redis spells it today
	if errors.Is(err, redis.Nil) {
		return true, nil // deleted since, so nobody held it: we made the key
	}
	return err == nil && before == seen, err
}

// Clear deletes the key, whoever holds it.
func (l *redisGetSet) Clear(ctx context.Context, key string) error {
	return l.client.Del(ctx, "redis-getset:"+key).Err()
}

func (*redisGetSet) Card() locks.Card {
	return locks.Card{
		ID: "redis-getset", Family: "redis", Source: "002, 003", Scope: locks.ScopeShared, Safe: true,
		Backends: []string{"mysql", "redis"}, Locker: true, Lease: true, LeasePerRequest: true, Slow: true,
		Title: locks.Text{EN: "A deadline in the value, taken over by GETSET", ZH: "值里存到期时间，GETSET 接管"},
		Summary: locks.Text{
			EN: "SETNX writes when the lease ends by the client's clock; when that has passed, the first GETSET takes over.",
			ZH: "SETNX 按客户端时钟写入到期时间；过期后，第一个 GETSET 的人接管。",
		},
		Protects: []locks.Hazard{locks.Race, locks.ReplicaRace, locks.Crash},
		Breaks: append([]locks.Break{
			{Hazard: locks.ClockJump, Why: locks.Text{
				EN: "Clients compare deadlines by their own clocks: a fast one takes the lock from a holder that works.",
				ZH: "到期与否看各客户端自己的时钟，走得快的会抢走别人正用着的锁。",
			}},
			{Hazard: locks.ForeignUnlock, Why: locks.Text{
				EN: "A holder past its lease deletes the key, whoever holds it by now.",
				ZH: "超过租期的持有者照样 DEL，删掉的是别人的锁。",
			}},
			{Hazard: locks.LostReply, Why: locks.Text{
				EN: "A deadline whose answer is lost carries no name: the lock is nobody's until it has passed.",
				ZH: "应答丢了，到期时间上没有名字，到期之前这把锁没有主人。",
			}},
		}, usual(locks.Overrun, locks.Pause, locks.Nesting, locks.Polling, locks.Failover)...),
	}
}
