package redislock

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/api"
	"oversell/locks"
)

// SetNXExpire sets the expiry by a second command (001, 002, 003). Tutorial 3.2 warns of the gap.
func SetNXExpire(c redis.UniversalClient, lease time.Duration) locks.Locker {
	return &redisSetNXExpire{polledLock{c, "redis-setnx-expire:", lease}}
}

type redisSetNXExpire struct{ polledLock }

// afterSetNX is the step of a request between its SETNX and its PEXPIRE.
const afterSetNX api.Step = "after-setnx"

func (l *redisSetNXExpire) Acquire(ctx context.Context, r locks.Request) (*locks.Lock, error) {
	lock, lease := l.of(r)
	// DEL does not check the owner. After our lease, it frees another holder's lock, as in Expire.
	release := func(ctx context.Context) error { return notHeldIfZero(l.client.Del(ctx, lock).Result()) }
	take := func(ctx context.Context) (got bool, err error) {
		got, err = l.client.SetNX(ctx, lock, "locked", 0).Result()
		if err != nil || !got {
			return false, err
		}
		// DANGER: a holder that dies between SETNX and PEXPIRE leaves a key without expiry (TTL
		// -1), and all other requests wait for ever.
		locks.Trace(ctx, afterSetNX, r.Key, r.Owner, 0)
		err = uncut(ctx, func(ctx context.Context) (err error) { // with a new time-out
			got, err = l.client.PExpire(ctx, lock, lease).Result()
			return err
		})
		if err != nil {
			_ = uncut(ctx, release) // the SETNX was answered, so the key is ours
		}
		return got, err // false means that a Clear deleted the key
	}
	// DANGER: the Grant has no Lease, so this holder does not notice the end of its lease.
	return attempt{take: take, pause: 100 * time.Millisecond, grant: locks.Grant{Release: release}}.acquire(ctx, r)
}

func (*redisSetNXExpire) Card() api.Card {
	return card(api.Card{
		ID: "redis-setnx-expire", Source: "3.2; 001, 002, 003", Lease: true, LeasePerRequest: true, Unchecked: true, Slow: true,
		Title: api.Text{EN: "SETNX, then EXPIRE", ZH: "先 SETNX，再 EXPIRE"},
		Summary: api.Text{
			EN: "SETNX creates the key and EXPIRE sets its expiry: two commands with a gap between them.",
			ZH: "SETNX 建键，EXPIRE 设过期，两条命令之间有空隙。",
		},
		When: api.Text{
			EN: "Not for production: a crash between the two commands leaves a lock that never expires. Use `redis` instead.",
			ZH: "不要用于生产环境：在两条命令之间崩溃，锁就永不过期。请改用 `redis`。",
		},
		Protects: []api.Hazard{api.Race, api.ReplicaRace},
		Breaks: []api.Break{
			{Hazard: api.Crash, At: afterSetNX, Why: api.Text{
				EN: "A holder that dies between SETNX and EXPIRE leaves a key that never expires.",
				ZH: "死在 SETNX 和 EXPIRE 之间，留下的键永不过期。",
			}},
			{Hazard: api.LostReply, Why: api.Text{
				EN: "A SETNX whose answer is lost is not followed by an EXPIRE: the key stays for ever.",
				ZH: "SETNX 的应答丢了，就不会再 EXPIRE，键永远留着。",
			}},
		},
	}, api.ForeignUnlock, api.Overrun, api.Pause, api.Nesting, api.Polling, api.Failover, api.ClockJump, api.Operator, api.Starved)
}
