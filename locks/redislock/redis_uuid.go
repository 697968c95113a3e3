package redislock

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/api"
	"oversell/locks"
)

// UUID stores a random value. A release compares it, then deletes the key (tutorial 3.3; 001).
func UUID(c redis.UniversalClient, lease time.Duration) locks.Locker {
	return &redisUUID{polledLock{c, "redis-uuid:", lease}}
}

type redisUUID struct{ polledLock }

// compared is the step of a release between its read of its own token and the DEL.
const compared api.Step = "compared"

func (l *redisUUID) Acquire(ctx context.Context, r locks.Request) (*locks.Lock, error) {
	lock, lease := l.of(r)
	token := locks.Token(r.Owner)
	release := func(ctx context.Context) error { return l.unlock(ctx, r, lock, token) }
	return attempt{
		take:   func(ctx context.Context) (bool, error) { return l.client.SetNX(ctx, lock, token, lease).Result() },
		pause:  50 * time.Millisecond,
		unsure: release, // the value shows whether the key is ours
		// DANGER: the Grant has no Lease, so this holder does not notice the end of its lease.
		grant: locks.Grant{Release: release, Again: release},
	}.acquire(ctx, r)
}

func (l *redisUUID) unlock(ctx context.Context, r locks.Request, lock, token string) error {
	value, err := l.client.Get(ctx, lock).Result()
	if errors.Is(err, redis.Nil) || err == nil && value != token {
		return locks.ErrNotHeld
	}
	if err != nil {
		return err
	}
	// DANGER: the comparison and the DEL are two commands. If the lease ends between them and
	// another request creates the key, we delete the lock of that holder.
	locks.Trace(ctx, compared, r.Key, r.Owner, 0)
	return uncut(ctx, func(ctx context.Context) error { // with a new time-out, after a pause
		return notHeldIfZero(l.client.Del(ctx, lock).Result())
	})
}

func (*redisUUID) Card() api.Card {
	return card(api.Card{
		ID: "redis-uuid", Source: "3.3; 001", Lease: true, LeasePerRequest: true, Unchecked: true, Slow: true,
		Title: api.Text{EN: "A random value, GET before DEL", ZH: "UUID 防误删"},
		Summary: api.Text{
			EN: "The value is random; the release compares it with a GET, and deletes the key in a second command.",
			ZH: "值是随机的 UUID；释放时先 GET 比较，再用另一条命令 DEL。",
		},
		When: api.Text{
			EN: "Not for production: the lock can change its holder between the comparison and the deletion. Use `redis` instead.",
			ZH: "不要用于生产环境：比较之后、删除之前，锁可能已换了持有者，仍会误删。请改用 `redis`。",
		},
		Protects: []api.Hazard{api.Race, api.ReplicaRace, api.Crash, api.LostReply},
		Breaks: []api.Break{
			{Hazard: api.ForeignUnlock, At: compared, Why: api.Text{
				EN: "The compare and the DEL are two steps: a lease that ends between them lets the DEL hit the next holder's lock.",
				ZH: "比较和 DEL 是两步，租期恰好在中间到期，删掉的就是下一个持有者的锁。",
			}},
		},
	}, api.Overrun, api.Pause, api.Nesting, api.Polling, api.Failover, api.ClockJump, api.Operator, api.Starved)
}
